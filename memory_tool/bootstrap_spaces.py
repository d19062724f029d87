"""The part of the composition root that joins a store for another space, and changes its model."""

import dataclasses
from dataclasses import dataclass
from typing import Final

from memory_tool.assembly import Stores
from memory_tool.bootstrap_embedders import Embedders
from memory_tool.bootstrap_indexes import Indexes
from memory_tool.bootstrap_truth import Truth
from memory_tool.index_jobs.agenda import Agenda
from memory_tool.index_jobs.followed_spaces import FollowedSpaces
from memory_tool.index_jobs.reembed import Reembedding, ReembedParts
from memory_tool.settings import Settings
from memory_tool.space_ports import SideStructure, SpaceKeeper
from memory_tool.space_values import FIRST_SPACE, KnownSpace

_LEASE: Final = "reembed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What was made from the settings, to make more of it for another space."""

    settings: Settings
    truth: Truth
    embedders: Embedders
    indexes: Indexes
    side: tuple[SideStructure, ...]


def recorded_space(truth: Truth) -> KnownSpace | None:
    """The active space of a store, if one is recorded."""
    if truth.keeper is not None:
        return _active(truth.keeper)
    space = truth.spaces.active_space()
    return KnownSpace(number=FIRST_SPACE, space=space, state="active") if space else None


def with_changes(stores: Stores, made: Made) -> Stores:
    """The stores, able to follow a change of model and to make one, where they can be."""
    keeper = made.truth.keeper
    if keeper is None or not made.indexes.by_space:
        return stores

    def active() -> int | None:
        known = _active(keeper)
        return known.number if known else None

    def for_active(before: Stores) -> Stores:
        known = _active(keeper)
        if known is None:
            return before
        return dataclasses.replace(
            before,
            space=known.number,
            recorded=lambda: known.space,
            embedder=made.embedders.of(known),
            vector_index=made.indexes.vector_index(known.number),
            inspected=made.indexes.inspected(known.number),
            where={**before.where, "embedder": known.space.name},
        )

    def prepare() -> None:
        for known in keeper.spaces():
            if known.state == "building":
                made.embedders.of(known)

    return dataclasses.replace(
        stores,
        active=active,
        prepare=prepare,
        for_active=for_active,
        side=keeper.kept,
        change_of_model=_reembedding(stores, made, keeper=keeper),
    )


def _reembedding(stores: Stores, made: Made, *, keeper: SpaceKeeper) -> Reembedding | None:
    following, background = made.truth.following, stores.background
    if following is None or following.lease_of is None:
        return None
    if not isinstance(background, FollowedSpaces):
        return None
    reembedding = Reembedding(
        ReembedParts(
            keeper=keeper,
            named=made.embedders.named,
            of=made.embedders.needed,
            index=made.indexes.vector_index,
            inventory=made.indexes.vector_inventory,
            truth=made.truth.inventory,
            pointer=stores.pointer,
            distrust=background.distrust,
            bring_forward=background.bring_forward,
            tidy=made.indexes.tidy,
            agenda=Agenda(following.jobs),
            lease=following.lease_of(_LEASE),
            side=made.side,
            batch=made.settings.embed_batch,
            lease_seconds=made.settings.lease_seconds,
            behind=made.settings.overlay_rows,
        )
    )
    # Should whoever began it die, another process goes on.
    background.also(reembedding.duty)
    return reembedding


def _active(keeper: SpaceKeeper) -> KnownSpace | None:
    return next((one for one in keeper.spaces() if one.state == "active"), None)
