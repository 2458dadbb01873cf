"""What a loop carries: the summary of a body says what following every path through it says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernelwright.compiler.lower.liveness import Liveness, names_read
from kernelwright.sketch import nodes

NAMES = st.sampled_from("abcd")


def loop(body: list[nodes.Statement]) -> nodes.For:
    return nodes.For("i", "range", nodes.Int(0), nodes.Int(4), nodes.Int(1), tuple(body))


def assigned(name: str, left: str, right: str) -> nodes.Assign:
    return nodes.Assign(name, nodes.Binary("+", nodes.Var(left), nodes.Var(right)))


ASSIGNMENTS = st.builds(assigned, NAMES, NAMES, NAMES)
STORES = st.builds(lambda name: nodes.Store("out", (), nodes.Var(name)), NAMES)
BODIES = st.recursive(
    st.lists(ASSIGNMENTS | STORES, max_size=4),
    lambda inner: st.lists(ASSIGNMENTS | STORES | inner.map(loop), max_size=4),
    max_leaves=12,
)


def followed(body: tuple[nodes.Statement, ...], live: set[str]) -> set[str]:
    """By going backwards through the body, and around each loop until nothing is added."""
    for statement in reversed(body):
        if isinstance(statement, nodes.Assign):
            live = (live - {statement.name}) | names_read(statement.value)
        elif isinstance(statement, nodes.Store):
            live = live | names_read(statement.value)
        elif isinstance(statement, nodes.For):
            while not (around := followed(statement.body, live)) <= live:
                live = live | around
    return live


@given(BODIES, st.sets(NAMES))
def test_the_summary_is_what_following_the_statements_gives(body: list[nodes.Statement], after: set[str]) -> None:
    statements = tuple(body)
    assert Liveness().before(statements, after) == followed(statements, after)


def test_deep_nests_take_no_longer_than_their_length() -> None:
    """Each level went around its loop twice: thirty levels were two to the thirtieth, and a network's kernel took minutes."""
    nest = [assigned("a", "b", "c")]
    for _ in range(30):
        nest = [loop(nest), assigned("d", "a", "a")]
    assert Liveness().before(tuple(nest), {"d"}) == {"a", "b", "c"}
