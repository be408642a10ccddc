"""Models: choosing one (`choose.choose_model`) and opening it (`open.open_model`)."""
