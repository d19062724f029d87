"""The part of the composition root that knows how each kind of index is built anew."""

from memory_tool.adapters.elasticsearch_renewal import ElasticsearchRenewal
from memory_tool.adapters.elasticsearch_target import ElasticsearchTarget
from memory_tool.adapters.faiss_fold import FaissTarget
from memory_tool.adapters.faiss_renewal import FaissRenewal
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.renewal_ports import GenerationCatalogue, Renewable


def renewal_of(
    target: IndexTarget, *, log: ChangeLog, catalogue: GenerationCatalogue
) -> Renewable | None:
    """How a target of ours is built anew; ``None`` for one that the caller brought."""
    if isinstance(target, FaissTarget):
        return FaissRenewal(target, log=log, catalogue=catalogue)
    if isinstance(target, ElasticsearchTarget):
        return ElasticsearchRenewal(target, log=log, catalogue=catalogue)
    return _of_tantivy(target, catalogue)


def _of_tantivy(target: IndexTarget, catalogue: GenerationCatalogue) -> Renewable | None:
    try:
        from memory_tool.adapters.tantivy_renewal import TantivyRenewal  # noqa: PLC0415 - extra `local`
        from memory_tool.adapters.tantivy_target import TantivyTarget  # noqa: PLC0415 - extra `local`
    except ImportError:
        return None
    return (
        TantivyRenewal(target, catalogue=catalogue) if isinstance(target, TantivyTarget) else None
    )
