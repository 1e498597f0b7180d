"""The wire formats of OpenAI, and of the many servers that speak them."""

from __future__ import annotations

from ._chat import OpenAIChat
from ._model_list import ListedModel, list_models
from ._responses import OpenAIResponses

__all__ = ("ListedModel", "OpenAIChat", "OpenAIResponses", "list_models")
