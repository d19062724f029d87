"""The kinds of index that a large block may get: how each is made, known again and searched.

Each keeps codes of the vectors and proposes rows by them; the stored vectors decide. How widely it
looks is a number that is chosen by what was measured: candidates kept while walking a graph, lists
that are visited, or how many more rows are proposed than are wanted.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Final, cast

import faiss
import numpy as np
from numpy.typing import NDArray

from memory_tool.errors import Corrupt
from memory_tool.vector_kinds import (
    CENTROIDS,
    PQ_LEAST,
    VECTOR_INDEXES,
    VECTORS_A_CENTROID,
)

RECALL_AT: Final = 10
CANDIDATES: Final = 4 * RECALL_AT
"""Fewest candidates that the codes propose and the exact vectors put in order. Four times the
wanted ones bring codes of 8 bits from a recall of .984 to .990, that of whole floats."""

RECALL_WANTED: Final = 0.98
SAMPLED_AIM: Final = 0.995
"""What the sample is to reach for it, by a wider walk. Where rows lie in tight clusters, questions
are harder than rows with noise: .976 for the sample's .992 (20,000 made rows), .979 for .989 and
.996 at the next width (30,000). On real texts the sample is the harder one: it costs little."""

COARSE_RECALL_WANTED: Final = 0.99
"""A coarse code has no path to lose: whoever takes it loses less than one hit in a hundred."""

EF_CHOICES: Final = (64, 128, 256, 512)

_TRAINING_ROWS: Final = 65_536
_TRAINING_BYTES: Final = 128 << 20
"""Floats that a training sees at most."""

_METRIC: Final = faiss.METRIC_INNER_PRODUCT


class IndexKind(ABC):
    """A kind of index over the rows of one block.

    Attributes:
        name: What manifests and settings call it.
        selects: Whether it leaves out rows while it searches. Where it doesn't, dead ones are
            proposed too.
        recall_wanted: Share of the ten nearest rows that it has to find, or another kind is tried.
        trained: Whether it learns from the vectors what a code means, so that it ages as they grow
            more. The range of each number, which bytes need, hardly changes.
        least: Fewest vectors that it can be built with.
    """

    name: str
    selects: bool = True
    recall_wanted: float = RECALL_WANTED
    trained: bool = True
    least: int = 2

    @abstractmethod
    def empty(self, rows: int, dimension: int) -> faiss.Index:
        """An index that is to be trained with a sample of so many rows, and then filled."""

    @abstractmethod
    def recognises(self, index: faiss.Index) -> bool:
        """Whether an index that was read is of this kind, in all of its parts."""

    @abstractmethod
    def widths(self, index: faiss.Index) -> Iterator[int]:
        """How widely it may be searched, narrow first."""

    @abstractmethod
    def candidates(self, width: int, depth: int) -> int:
        """How many rows to propose where ``depth`` are wanted."""

    @abstractmethod
    def parameters(self, width: int) -> faiss.SearchParameters | None:
        """How to search so widely."""

    def training_rows(self, dimension: int) -> int:
        """Most vectors to train with."""
        return max(self.least, min(_TRAINING_ROWS, _TRAINING_BYTES // (4 * dimension)))


class Hnsw(IndexKind):
    """A graph in which every row knows 32 near ones: 272 bytes a row, and its code."""

    trained = False

    NEIGHBOURS = 32

    def __init__(self, name: str, *, quantizer: int | None) -> None:
        """Keep rows as ``quantizer`` codes them; as floats without one."""
        self.name = name
        self.quantizer = quantizer

    def empty(self, rows: int, dimension: int) -> faiss.Index:  # noqa: ARG002 - the same for any number
        """See :meth:`IndexKind.empty`."""
        if self.quantizer is None:
            return faiss.IndexHNSWFlat(dimension, self.NEIGHBOURS, _METRIC)
        # The stubs want another type.
        quantizer = cast("faiss.ScalarQuantizer", self.quantizer)
        return faiss.IndexHNSWSQ(dimension, quantizer, self.NEIGHBOURS, _METRIC)

    def recognises(self, index: faiss.Index) -> bool:
        """See :meth:`IndexKind.recognises`."""
        wanted = faiss.IndexHNSWFlat if self.quantizer is None else faiss.IndexHNSWSQ
        if type(index) is not wanted:
            return False
        storage = faiss.downcast_index(index.storage)
        if self.quantizer is None:
            return isinstance(storage, faiss.IndexFlat)
        return (
            isinstance(storage, faiss.IndexScalarQuantizer) and storage.sq.qtype == self.quantizer
        )

    def widths(self, index: faiss.Index) -> Iterator[int]:  # noqa: ARG002 - the same for any index
        """See :meth:`IndexKind.widths`: candidates kept while walking."""
        yield from EF_CHOICES

    def candidates(self, width: int, depth: int) -> int:  # noqa: ARG002 - it is no count of rows
        """See :meth:`IndexKind.candidates`."""
        return max(depth, CANDIDATES)

    def parameters(self, width: int) -> faiss.SearchParameters:
        """See :meth:`IndexKind.parameters`."""
        return _search_parameters("SearchParametersHNSW", efSearch=width)


class Ivf(IndexKind):
    """Bytes in lists around centroids, of which the nearest lists are read."""

    name = "ivf,sq8"

    def empty(self, rows: int, dimension: int) -> faiss.Index:
        """See :meth:`IndexKind.empty`. FAISS advises four lists for each root of the rows."""
        rows_trained_with = min(rows, self.training_rows(dimension))
        lists = max(1, min(int(4 * rows**0.5), rows_trained_with // VECTORS_A_CENTROID))
        index = faiss.IndexIVFScalarQuantizer(
            faiss.IndexFlatIP(dimension),
            dimension,
            lists,
            faiss.ScalarQuantizer.QT_8bit,
            _METRIC,
            False,  # noqa: FBT003 - the driver knows no names: codes are of vectors, not of remainders
        )
        return cast("faiss.Index", index)

    def recognises(self, index: faiss.Index) -> bool:
        """See :meth:`IndexKind.recognises`. Lists in a file of their own are not ours."""
        if type(index) is not faiss.IndexIVFScalarQuantizer or index.invlists is None:
            return False
        centroids = faiss.downcast_index(index.quantizer)
        lists = faiss.downcast_InvertedLists(index.invlists)
        return (
            index.sq.qtype == faiss.ScalarQuantizer.QT_8bit
            and type(centroids) is faiss.IndexFlatIP
            and (centroids.ntotal, centroids.d) == (index.nlist, index.d)
            and type(lists) is faiss.ArrayInvertedLists
        )

    def widths(self, index: faiss.Index) -> Iterator[int]:
        """See :meth:`IndexKind.widths`: lists that are read, in the end all of them."""
        lists = cast("faiss.IndexIVF", index).nlist
        width = 8
        while width < lists:
            yield width
            width *= 2
        yield lists

    def candidates(self, width: int, depth: int) -> int:  # noqa: ARG002 - it is no count of rows
        """See :meth:`IndexKind.candidates`."""
        return max(depth, CANDIDATES)

    def parameters(self, width: int) -> faiss.SearchParameters:
        """See :meth:`IndexKind.parameters`."""
        return _search_parameters("SearchParametersIVF", nprobe=width)


class _Scan(IndexKind):
    """Codes so coarse that reading all of them is cheap, and that propose many rows."""

    recall_wanted = COARSE_RECALL_WANTED

    def widths(self, index: faiss.Index) -> Iterator[int]:  # noqa: ARG002 - the same for any index
        """See :meth:`IndexKind.widths`: rows proposed for each of the ten best."""
        yield from (4, 10, 20, 40, 80)

    def candidates(self, width: int, depth: int) -> int:
        """See :meth:`IndexKind.candidates`. What was measured holds for the first ten.

        Behind them four rows are proposed for each one that is wanted.
        """
        return max(width * RECALL_AT, 4 * depth)


class Pq(_Scan):
    """Product quantisation: four numbers become the number of the nearest of 256 centroids.

    More is wanted of the sample, from which the centroids were learned: at .99 the recall of other
    real vectors was .983.
    """

    name = "pq"
    selects = False
    recall_wanted = 0.995
    least = PQ_LEAST

    ROUNDS = 10
    """Of k-means; more gain nothing (25,000 real vectors)."""

    def empty(self, rows: int, dimension: int) -> faiss.Index:  # noqa: ARG002 - the same for any number
        """See :meth:`IndexKind.empty`.

        ``index_factory`` would switch polysemous training on: 535 seconds instead of 38.
        """
        index = faiss.IndexPQ(dimension, _parts(dimension), 8, _METRIC)
        index.do_polysemous_training = False  # type: ignore[attr-defined] # missing in the stubs
        index.pq.cp.niter = self.ROUNDS
        return cast("faiss.Index", index)

    def recognises(self, index: faiss.Index) -> bool:
        """See :meth:`IndexKind.recognises`."""
        return (
            type(index) is faiss.IndexPQ
            and _parts(index.d) == index.pq.M
            and index.pq.ksub == CENTROIDS
        )

    def parameters(self, width: int) -> None:
        """See :meth:`IndexKind.parameters`."""

    def training_rows(self, dimension: int) -> int:  # noqa: ARG002 - the same for any vector
        """See :meth:`IndexKind.training_rows`."""
        return 64 * CENTROIDS


class Rabitq(_Scan):
    """RaBitQ: the signs of a vector around the middle of all, with two numbers that correct them.

    The random rotation of its inventors is left out: it raised the recall on real vectors by .002,
    and would multiply each question with a matrix in the threads of BLAS.
    """

    name = "rabitq"

    QUESTION_BITS = 4
    """Bits of each number of a question: 8 take a third more time and find no more."""

    def empty(self, rows: int, dimension: int) -> faiss.Index:  # noqa: ARG002 - the same for any number
        """See :meth:`IndexKind.empty`."""
        return cast("faiss.Index", faiss.IndexRaBitQ(dimension, _METRIC))

    def recognises(self, index: faiss.Index) -> bool:
        """See :meth:`IndexKind.recognises`."""
        # The stubs lack the number of bits.
        return type(index) is faiss.IndexRaBitQ and getattr(index.rabitq, "nb_bits", 0) == 1

    def parameters(self, width: int) -> faiss.SearchParameters:  # noqa: ARG002 - it always reads all codes
        """See :meth:`IndexKind.parameters`."""
        return _search_parameters("RaBitQSearchParameters", qb=self.QUESTION_BITS)


def _parts(dimension: int) -> int:
    """Parts of a vector that a byte stands for: of four numbers, or of the next that divides."""
    numbers = next(n for n in range(min(4, dimension), dimension + 1) if dimension % n == 0)
    return dimension // numbers


def _search_parameters(name: str, **values: int) -> faiss.SearchParameters:
    # The stubs lack most of these classes.
    parameters = getattr(faiss, name)()
    for attribute, value in values.items():
        setattr(parameters, attribute, value)
    return cast("faiss.SearchParameters", parameters)


def selecting(
    parameters: faiss.SearchParameters | None, alive: NDArray[np.bool_]
) -> faiss.SearchParameters | None:
    """The same search among living rows."""
    if parameters is not None:
        bits = np.packbits(alive, bitorder="little")
        # The stub is that of C++; the wrapper takes an array and keeps it.
        parameters.sel = faiss.IDSelectorBitmap(bits)  # type: ignore[call-arg, arg-type] # as said above
    return parameters


KINDS: Final[Mapping[str, IndexKind]] = {
    kind.name: kind
    for kind in (
        Hnsw("hnsw32,flat", quantizer=None),
        Hnsw("hnsw32,fp16", quantizer=faiss.ScalarQuantizer.QT_fp16),
        Hnsw("hnsw32,sq8", quantizer=faiss.ScalarQuantizer.QT_8bit),
        Ivf(),
        Pq(),
        Rabitq(),
    )
}


def kinds_of(vector_index: str) -> tuple[IndexKind, ...]:
    """What is tried for the setting of that name."""
    return tuple(KINDS[name] for name in VECTOR_INDEXES[vector_index])


def kind_named(name: str) -> IndexKind:
    """The kind that a manifest names.

    Raises:
        Corrupt: It is none.
    """
    if name not in KINDS:
        message = f"the manifest names a kind of index that is none: {name!r}"
        raise Corrupt(message)
    return KINDS[name]
