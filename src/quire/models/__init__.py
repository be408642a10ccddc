"""The models: choosing one (`choose_model`) and opening it (`open_model`).

Importing this costs next to nothing: the client libraries and the embedded runtime are imported by `open_model`,
and only the ones that the chosen model needs.
"""

from quire.models.choose import Choice, choose_model
from quire.models.opening import open_model
from quire.models.settings import ModelSettings, ProviderSettings

__all__ = ["Choice", "ModelSettings", "ProviderSettings", "choose_model", "open_model"]
