"""The part of the composition root that makes indexes, for each space, and what feeds them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from memory_tool.adapters.elasticsearch_indexes import ElasticsearchIndexes
from memory_tool.adapters.faiss_codes import kinds_of
from memory_tool.adapters.faiss_files import open_generation
from memory_tool.adapters.faiss_fold import FaissTarget
from memory_tool.adapters.faiss_graph import GraphPolicy
from memory_tool.adapters.faiss_inventory import FaissInventory
from memory_tool.adapters.faiss_spaces import space_folder, tidy
from memory_tool.adapters.faiss_vector_index import FaissVectorIndex
from memory_tool.adapters.host_folder import FolderLease, open_folder
from memory_tool.assembly import Background
from memory_tool.bootstrap_check import Folders, inspected_of
from memory_tool.bootstrap_truth import Truth
from memory_tool.errors import MissingExtra
from memory_tool.index_jobs.background import BackgroundApplier
from memory_tool.index_jobs.followed_spaces import FollowedSpaces
from memory_tool.index_jobs.following import FolderTargets, Following, background_of
from memory_tool.inspection_ports import Inspected
from memory_tool.inventory_ports import IndexInventory
from memory_tool.job_values import STORE, Duty, MayGoOn
from memory_tool.log_ports import IndexTarget
from memory_tool.model import EmbeddingSpace
from memory_tool.port_values import Patience
from memory_tool.ports import KeywordIndex, VectorIndex
from memory_tool.settings import Settings
from memory_tool.space_values import FIRST_SPACE, followed, target_in_space
from memory_tool.text.tokenise import TOKENISER_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenIndexes:
    """Indexes that the caller brings."""

    vector: VectorIndex | None
    keyword: KeywordIndex | None
    shared: tuple[IndexTarget, ...]


class Indexes:
    """The indexes of a store, as searches see them and as appliers feed them."""

    def __init__(
        self,
        settings: Settings,
        given: GivenIndexes,
        *,
        truth: Truth,
        server: ElasticsearchIndexes | None,
    ) -> None:
        """Make the keyword index; an index of vectors is made when it is asked for."""
        self._settings = settings
        self._given = given
        self._truth = truth
        self._server = server
        self._identity = open_folder(settings.data_dir)
        self._vectors = server if settings.vector_backend == "elasticsearch" else None
        self._root = settings.data_dir / "vectors"
        self._made: dict[int, VectorIndex] = {}
        self.keyword_index = given.keyword or self._keyword_index()

    @property
    def where(self) -> Mapping[str, str]:
        """What is in use, for people."""
        return {
            "keywords": _shown(self._given.keyword, self._server, embedded="Tantivy"),
            "vectors": _shown(self._given.vector, self._vectors, embedded="FAISS"),
        }

    @property
    def by_space(self) -> bool:
        """Whether each space has an index of its own; one that is given is of one for good."""
        return self._given.vector is None and self._truth.keeper is not None

    def recorded(self, number: int) -> Callable[[], EmbeddingSpace | None]:
        """The space of a number, asked for until there is one: it never changes."""
        keeper = self._truth.keeper
        if keeper is None:
            return _Remembered(self._truth.spaces.active_space)
        return _Remembered(
            lambda: next((one.space for one in keeper.spaces() if one.number == number), None)
        )

    def vector_index(self, number: int) -> VectorIndex:
        """The vector index of a space, the same at each call."""
        if self._given.vector is not None:
            return self._given.vector
        if number not in self._made:
            self._made[number] = self._vector_index(number)
        return self._made[number]

    def vector_inventory(self, number: int) -> AbstractContextManager[IndexInventory] | None:
        """What the index of a space holds that is read now; ``None`` where nothing is."""
        following = self._truth.following
        index = self.vector_index(number)
        pointer = following.log.pointer(index.target) if following else None
        if pointer is None:
            return None
        if self._vectors is not None:
            return self._vectors.inventory(pointer)
        folder = space_folder(self._root, self._truth.identity, space=number)
        return nullcontext(FaissInventory(open_generation(folder, pointer)))

    def inspected(self, number: int) -> tuple[Inspected, ...]:
        """The indexes that a check of a space can look at closely."""
        return inspected_of(
            Folders(
                vectors=space_folder(self._root, self._truth.identity, space=number),
                keywords=self._settings.data_dir / "keywords",
            ),
            self._truth,
            space=self.recorded(number),
            vector_index=self.vector_index(number),
            keyword_index=self.keyword_index,
        )

    def background(self) -> Background | None:
        """What brings the indexes forward; ``None`` where there is no log."""
        following = self._truth.following
        if following is None:
            return None
        if not self.by_space:
            return self._background(following, (FIRST_SPACE,))
        return FollowedSpaces(self.followed, lambda spaces: self._background(following, spaces))

    def followed(self) -> tuple[int, ...]:
        """The numbers of the spaces whose indexes are brought forward, the active one first."""
        keeper = self._truth.keeper
        return followed(keeper.spaces() if keeper else ())

    def tidy(self) -> None:
        """Remove all that lies anywhere of spaces that are not needed any more."""
        self._tidy_folder(lambda: True)
        self._tidy_server(lambda: True)

    def leave_kept(self) -> tuple[str, ...]:
        """Remove the indexes of spaces that nobody follows; the targets that they were."""
        followed = frozenset(self.followed())
        if not self.by_space or self._truth.keeper is None:
            return ()
        left = [one for one in self._truth.keeper.spaces() if one.number not in followed]
        if self._vectors is not None:
            self._vectors.tidy_vectors(keep=followed)
        else:
            tidy(self._root, self._truth.identity, keep=followed)
        return tuple(self.vector_index(one.number).target for one in left)

    def _tidy_folder(self, _may_go_on: MayGoOn) -> None:
        if self._vectors is None:
            tidy(self._root, self._truth.identity, keep=self._needed())

    def _tidy_server(self, _may_go_on: MayGoOn) -> None:
        if self._vectors is not None:
            self._vectors.tidy_vectors(keep=self._needed())

    def _needed(self) -> frozenset[int]:
        """Spaces whose indexes stay. That of a kept one stays for a day, until its target retires.

        What was deleted meanwhile must not stay in an index that nobody brings forward. To go back
        to the space later, its index is built from the vectors that the store keeps.
        """
        keeper, following = self._truth.keeper, self._truth.following
        known = keeper.spaces() if keeper else ()
        return frozenset(
            one.number
            for one in known
            if one.state != "kept"
            or (following and following.log.pointer(self.vector_index(one.number).target))
        ) or frozenset({FIRST_SPACE})

    # ── As searches see them ──

    def _vector_index(self, number: int) -> VectorIndex:
        space = self.recorded(number)
        if self._vectors is not None:
            return self._vectors.vector_index(space, number=number)
        return FaissVectorIndex(
            space_folder(self._root, self._truth.identity, space=number),
            target=self._faiss_name(number),
            store=self._truth.identity,
            space=space,
        )

    def _faiss_name(self, number: int) -> str:
        return vector_target(self._truth.identity, self._identity, space=number)

    def _keyword_index(self) -> KeywordIndex:
        if self._server is not None:
            return self._server.keyword_index()
        try:
            from memory_tool.adapters.tantivy_keyword_index import TantivyKeywordIndex  # noqa: PLC0415 - extra `local`
        except ImportError as error:
            message = "Tantivy is not installed: pip install 'threefold[local]'"
            raise MissingExtra(message) from error
        return TantivyKeywordIndex(
            self._settings.data_dir / "keywords",
            target=f"tantivy:{self._identity}",
            tokeniser=TOKENISER_VERSION,
        )

    # ── As appliers feed them ──

    def _background(self, following: Following, spaces: tuple[int, ...]) -> BackgroundApplier:
        name = f"folder:{self._identity}"
        folder = FolderTargets(
            name=name,
            lease=FolderLease(self._settings.data_dir),
            targets=[
                *self._keyword_targets(),
                *(target for number in spaces for target in self._vector_targets(number)),
            ],
            vector_index=self.vector_index(spaces[0]),
            duties=(Duty(kind="spaces", target=name, every="hour", run=self._tidy_folder),),
        )
        tidying = Duty(kind="spaces", target=STORE, every="hour", run=self._tidy_server)
        return background_of(
            replace(following, duties=(*following.duties, tidying)),
            folder,
            shared=[*self._server_targets(spaces), *self._given.shared],
        )

    def _server_targets(self, spaces: tuple[int, ...]) -> Iterator[IndexTarget]:
        """The indexes on a server, which one process of all hosts brings forward."""
        following = self._truth.following
        if self._server is None or following is None:
            return
        if self._given.keyword is None:
            yield self._server.target("keyword", log=following.log)
        if self._given.vector is None and self._vectors is not None:
            for number in spaces:
                yield self._vectors.target("vector", log=following.log, number=number)

    def _vector_targets(self, number: int) -> Iterator[IndexTarget]:
        given, following = self._given.vector, self._truth.following
        if given is not None:
            if isinstance(given, IndexTarget):
                yield given
            return
        if self._vectors is not None or following is None:
            return
        settings, name, log = self._settings, self._faiss_name(number), following.log
        yield FaissTarget(
            space_folder(self._root, self._truth.identity, space=number),
            name=name,
            pointer=lambda: log.pointer(name),
            policy=GraphPolicy(
                above=settings.hnsw_min_rows,
                kinds=kinds_of(settings.vector_index),
                ef_construction=settings.hnsw_ef_construction,
            ),
            patience=Patience(rows=settings.fold_rows, seconds=settings.fold_seconds),
        )

    def _keyword_targets(self) -> Iterator[IndexTarget]:
        given = self._given.keyword
        if given is not None:
            if isinstance(given, IndexTarget):
                yield given
            return
        if self._server is not None:
            return
        from memory_tool.adapters.tantivy_target import TantivyTarget  # noqa: PLC0415 - extra `local`

        yield TantivyTarget(
            self._settings.data_dir / "keywords",
            name=self.keyword_index.target,
            tokeniser=TOKENISER_VERSION,
        )


def vector_target(store: str, folder: str, *, space: int) -> str:
    """The name of the index of a space in a data folder, by the identities of store and folder."""
    return target_in_space(f"faiss:{store[:8] or 'given'}:{folder}", space)


class _Remembered:
    """The recorded space, asked for until there is one."""

    def __init__(self, ask: Callable[[], EmbeddingSpace | None]) -> None:
        self._ask = ask
        self._space: EmbeddingSpace | None = None

    def __call__(self) -> EmbeddingSpace | None:
        if self._space is None:
            self._space = self._ask()
        return self._space


def _shown(given: object, server: ElasticsearchIndexes | None, *, embedded: str) -> str:
    if given is not None:
        return "given"
    return server.shown if server is not None else embedded
