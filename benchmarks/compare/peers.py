"""Who is compared: what is installed, what runs in it, and how it is imported."""

from __future__ import annotations

from pathlib import Path

import attrs

__all__ = ("FLOORS", "HTTP_FLOOR", "ONWARD", "PEERS", "SUBJECTS", "Subject")

ROOT = Path(__file__).resolve().parent.parent.parent


@attrs.frozen(kw_only=True)
class Subject:
    """One library, or one loop written by hand."""

    name: str
    module: str
    """In `benchmarks.compare.subjects`; a part behind a colon is handed to it."""
    requires: tuple[str, ...]
    """For pip: the library, and what it needs to talk to an OpenAI-compatible server."""
    imports: str = ""
    """The least that a program of it imports; empty for one that is not measured so."""
    imports_client: str = ""
    """What comes on top for a model behind HTTP."""
    does: tuple[str, ...] = ("runs", "many", "http")
    """The kinds of work that it can do."""

    @property
    def environment(self) -> str:
        """The folder of its environment: equal for equal requirements."""
        return "onward" if self.requires == (str(ROOT),) else self.module


ONWARD = Subject(
    name="Onward",
    module="onward",
    requires=(str(ROOT),),
    imports="import actors",
    imports_client="from actors.models import OpenAIChat",
)
PEERS = (
    Subject(
        name="agno",
        module="agno",
        requires=("agno==3.1.10", "openai==3.57.0"),
        imports="from agno.agent import Agent",
        imports_client="from agno.models.openai import OpenAIChat",
    ),
    Subject(
        name="langgraph",
        module="langgraph",
        requires=("langgraph==1.2.24", "langchain-openai==1.7.4"),
        imports="from langgraph.prebuilt import create_react_agent",
        imports_client="from langchain_openai import ChatOpenAI",
    ),
    Subject(
        name="openai-agents",
        module="openai_agents",
        requires=("openai-agents==0.24.0",),
        imports="from agents import Agent, Runner",
        imports_client="from agents import OpenAIChatCompletionsModel",
    ),
    Subject(
        name="pydantic-ai",
        module="pydantic_ai",
        requires=("pydantic-ai-slim[openai]==2.68.0",),
        imports="from pydantic_ai import Agent",
        imports_client="from pydantic_ai.models.openai import OpenAIChatModel",
    ),
)
HTTP_FLOOR = Subject(name="floor: httpx alone", module="floors:httpx", requires=ONWARD.requires, does=("http",))
FLOORS = (
    Subject(name="floor: bare trio", module="floors:bare", requires=ONWARD.requires, does=("runs", "many")),
    Subject(name="floor: four thin actors", module="floors:actors", requires=ONWARD.requires, does=("runs", "many")),
    HTTP_FLOOR,
)
SUBJECTS = (*FLOORS, ONWARD, *PEERS)
