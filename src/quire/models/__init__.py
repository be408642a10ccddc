"""The models: choosing one (`choose.choose_model`) and opening it (`opening.open_model`)."""
