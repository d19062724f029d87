"""The HTTP API: the SDK's methods as JSON over ``/v1/…``."""

from importlib import metadata
from typing import Final

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer

from memory_manage.interfaces.http_access import Gate
from memory_manage.interfaces.http_errors import answer_errors
from memory_manage.interfaces.http_keys import KeyRing
from memory_manage.interfaces.http_memories import memories
from memory_manage.interfaces.http_upkeep import probes, upkeep
from memory_manage.manager import MemoryManage

_DESCRIPTION: Final = """One long-term memory for AI agents. Bodies are the options of the SDK's
methods, answers what they return. Every error has the body `{"error": {"type", "message", …}}`."""


def application(memory: MemoryManage, ring: KeyRing | None, *, body_bytes: int) -> FastAPI:
    """The application over an open memory, which stays the caller's to close.

    Args:
        memory: The memory.
        ring: The API keys; ``None`` lets everybody of this machine do everything.
        body_bytes: Largest request.
    """
    app = FastAPI(
        title="Threefold",
        version=metadata.version("threefold"),
        description=_DESCRIPTION,
        # Their pages would load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.memory = memory
    app.state.body_bytes = body_bytes
    # For OpenAPI: the gate has checked the key long before.
    bearer = [Depends(HTTPBearer(auto_error=False))] if ring is not None else []
    app.include_router(memories, dependencies=bearer)
    app.include_router(upkeep, dependencies=bearer)
    app.include_router(probes)
    app.add_middleware(Gate, ring=ring)
    answer_errors(app)
    return app
