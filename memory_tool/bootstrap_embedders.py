"""The part of the composition root that makes embedders: by name, and for the spaces of a store."""

import re
from contextlib import ExitStack
from typing import Final

from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.adapters.offline_embedder import REVISION, OfflineEmbedder
from memory_tool.adapters.openai_embedder import OpenAIEmbedder
from memory_tool.adapters.sentence_transformer_embedder import SentenceTransformerEmbedder
from memory_tool.errors import InputError, SettingsError, Unavailable
from memory_tool.guarded_embedder import AbsentEmbedder
from memory_tool.log import logger
from memory_tool.model import EmbeddingSpace
from memory_tool.ports import Embedder
from memory_tool.settings import Settings
from memory_tool.space_values import KnownSpace

OFFLINE: Final = "offline"
HASHING: Final = "hashing"
_OPENAI: Final = "openai:"
_HASHING: Final = re.compile(r"hashing(?::(\d{1,4}))?(?:@(\w+))?")


class Embedders:
    """Makes embedders and keeps those that it made, each once."""

    def __init__(self, settings: Settings, given: Embedder | None) -> None:
        """Make none yet; ``given`` is used in place of the one that the settings name."""
        self._settings = settings
        self._given = given
        self._made: dict[str, Embedder] = {}
        self._closing = ExitStack()

    def opened(self, recorded: KnownSpace | None) -> Embedder:
        """The one that was given, else that of the settings, else of the record, else offline."""
        if self._given is not None:
            return self._given
        if self._settings.embedder:
            # Whoever names a model wants it: fetching it is then no surprise.
            return self.named(self._settings.embedder)
        if recorded is None:
            return self.named(OFFLINE)
        return self.named(name_of(recorded), allow_download=False)

    def of(self, known: KnownSpace) -> Embedder:
        """The embedder of a space that became the active one; never an error.

        One that can't be had, or that the settings don't want, says so whenever it is asked.
        """
        name = name_of(known)
        try:
            made = self.opened(known)
            found = made.space
        except InputError as error:
            reason = f"{name} can't be used here: {error}"
            return AbsentEmbedder(known.space, reason=reason)
        except Unavailable:
            # It is asked again with each vector, and held against the record then.
            return self.opened(known)
        if found == known.space:
            return made
        logger().warning("embedder_of_another_space", wanted=known.space.name, made=found.name)
        reason = (
            f"the store was changed to vectors of {known.space.name}, this process makes"
            f" {found.name}: set `embedder` to {name!r} or leave it empty, and open again"
        )
        return AbsentEmbedder(known.space, reason=reason)

    def needed(self, known: KnownSpace) -> Embedder:
        """The embedder of a space, to make vectors that are missing.

        Raises:
            Unavailable: Its model can't be had here.
        """
        wanted = dict.fromkeys((known.embedder, self._settings.embedder, _name_of(known.space)))
        if self._given is not None and self._given.space == known.space:
            return self._given
        reasons: list[str] = []
        for name in filter(None, wanted):
            try:
                made = self.named(name)
                if made.space == known.space:
                    return made
                reasons.append(f"{name} makes {made.space.name}")
            except InputError as error:
                reasons.append(str(error))
        message = f"the model of {known.space.name} can't be had here: {'; '.join(reasons)}"
        raise Unavailable(message, store="embedder")

    def named(self, name: str, *, allow_download: bool = True) -> Embedder:
        """The embedder of a name, as the setting ``embedder`` has it.

        Raises:
            MissingExtra: An optional part is not installed.
            SettingsError: A further setting is missing, or the name can't be.
        """
        if name not in self._made:
            self._made[name] = self._make(name, allow_download=allow_download)
        return self._made[name]

    def close(self) -> None:
        """Let go of connections of those that were made."""
        self._closing.close()

    def _make(self, name: str, *, allow_download: bool) -> Embedder:
        hashing = _HASHING.fullmatch(name)
        if hashing:
            return HashingEmbedder(dimension=int(hashing[1] or 64), revision=hashing[2] or "")
        if name == OFFLINE:
            return OfflineEmbedder()
        if name.startswith(_OPENAI):
            if not self._settings.embedder_url:
                message = f"embedder {name!r} needs embedder_url, the base address of the endpoint"
                raise SettingsError(message)
            made = OpenAIEmbedder(
                base_url=self._settings.embedder_url,
                model=name.removeprefix(_OPENAI),
                api_key=self._settings.embedder_key,
                batch=self._settings.embed_batch,
            )
            self._closing.callback(made.close)
            return made
        return SentenceTransformerEmbedder(
            model=name, allow_download=allow_download, batch=self._settings.embed_batch
        )


def name_of(known: KnownSpace) -> str:
    """What the setting ``embedder`` has to say to get the model of a space."""
    return known.embedder or _name_of(known.space)


def _name_of(space: EmbeddingSpace) -> str:
    if space.model == HASHING:
        size = "" if space.dimension == HashingEmbedder().space.dimension else f":{space.dimension}"
        return f"{HASHING}{size}{f'@{space.revision}' if space.revision else ''}"
    return OFFLINE if space.revision == REVISION else space.model
