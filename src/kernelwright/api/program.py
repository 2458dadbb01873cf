"""A functional graph as it runs: pieces of ours and eager operators in order.

In: the graph that AOTAutograd gives for inference, and the first real inputs. Out: a callable like the graph. First every kind of product
is tried alone (a library's may be better), and what only a decomposition of torch's makes designable; then the pieces in which the
winners and everything light are joined. What a trial refuses goes back to eager; a piece that lost with its products is tried once more
without them. At last the whole is held against eager.
"""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from kernelwright.api.bounds import complaint, tensors
from kernelwright.api.explanation import Record, Row
from kernelwright.api.libraries import digest
from kernelwright.api.partition import (
    PRODUCTS,
    designable,
    doubtful,
    draws,
    is_view,
    pieces,
    short_name,
    sides,
    single_views,
    values_of,
)
from kernelwright.api.piece import identity
from kernelwright.api.shares import by_operator, node_seconds
from kernelwright.api.trial import Finding, Trial
from kernelwright.compiler.frontend.duplicates import merge_duplicates

ROUNDS = 4
"""Partitions that are tried at most."""
ALONE = 0.97
"""A product that is this much of a library's speed alone may join a piece: there it saves a trip through memory."""
MOST_WIDE_BYTES = 4 << 30
"""Inputs up to this size are run in fp64 as a whole."""


class Extract:
    """Some nodes of a graph as a graph module of their own: its inputs are nodes of the graph, its outputs what others read."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        inside = set(nodes)
        graph = Graph()
        copies: dict[Node, Node] = {}
        self.nodes = list(nodes)
        self.inputs: list[Node] = []
        for node in nodes:
            for source in node.all_input_nodes:
                if source not in inside and source not in copies:
                    copies[source] = graph.placeholder(f"x{len(self.inputs)}")
                    copies[source].meta = dict(source.meta)
                    self.inputs.append(source)
        for node in nodes:
            copies[node] = graph.node_copy(node, lambda n: copies[n])
        self.outputs = [n for n in nodes if any(u not in inside for u in n.users) and values_of(n) and not _several(n)]
        graph.output(tuple(copies[n] for n in self.outputs))
        self.module = GraphModule({}, graph)

    @property
    def fakes(self) -> list[Any]:
        """The inputs as shapes and dtypes."""
        return [n.meta["val"] for n in self.inputs]

    @property
    def operators(self) -> str:
        """Names of what is computed."""
        return ", ".join(dict.fromkeys(short_name(n).strip("_") for n in self.nodes if short_name(n) and not is_view(n)))


def _several(node: Node) -> bool:
    return isinstance(node.meta.get("val"), list | tuple)


class Program:
    """Called by AOTAutograd's runtime with a list of inputs that it may empty."""

    _boxed_call = True

    def __init__(
        self, graph: GraphModule, record: Record, *, budget: float = 300.0, raced: bool = True, designs: int = 1
    ) -> None:
        self.graph = graph
        self.record = record
        self.budget, self.raced, self.designs = budget, raced, designs
        self.run: Callable[..., Any] = graph.forward
        self.ready = self.improved = False
        self.refusal = _unsuitable(graph)
        """Why the graph is left alone as a whole."""
        self.draws = any(map(draws, graph.graph.nodes))
        """Whether it draws random numbers: those stay with eager, in eager's order."""
        self.seen: tuple[Any, ...] = ()
        self.key = ""
        """Names the graph with its pieces, for what is found out about the whole."""

    def __call__(self, args: list[Any]) -> Any:
        given = tuple(args)
        if not self.ready:
            self.seen = given
        args.clear()
        return self.run(*given)

    def prepare(self) -> None:
        """Decides who runs what, on the inputs that were seen; they are only read. Afterwards `run` is the best that is right. Not to be
        called from inside a call: AOTAutograd's runtime keeps dispatch keys away that recording a piece needs."""
        args, self.seen, self.ready = self.seen, (), True
        started = time.monotonic()
        # A copy: repeating views must not touch the graph that serves as eager.
        source = GraphModule(self.graph, _copy(self.graph.graph))
        merge_duplicates(source.graph)
        single_views(source)
        with ThreadPoolExecutor(max(1, (os.cpu_count() or 2))) as pool:
            made = _Making(source, list(args), self.record, pool, started + self.budget, self.raced, self.designs).make()
        self.record.seconds = time.monotonic() - started
        if made is None:
            self.record.why = self.record.why or "no piece is faster than eager"
            return
        self.key = digest(identity(source, args), *sorted(e for e in self.record.keys))
        wrong = self._wrong(made, args)
        if wrong:
            self.record.why = f"not right as a whole: {wrong}"
            return
        self.run = made.forward
        self.improved = True

    def _wrong(self, made: GraphModule, args: Sequence[Any]) -> str:
        state = torch.get_rng_state() if self.draws else None
        native = tensors(self.graph.forward(*args))
        if state is not None:
            after = torch.get_rng_state()
            torch.set_rng_state(state)
            made.forward(*args)
            # What is drawn from a rounded distribution may differ; every piece was held against fp64.
            return "" if torch.equal(after, torch.get_rng_state()) else "it draws other random numbers"
        ours = tensors(made.forward(*args))
        size = sum(t.numel() * t.element_size() for t in args if isinstance(t, torch.Tensor))
        if size > MOST_WIDE_BYTES:
            return ""  # every piece was held against fp64; twice this would not fit
        return complaint(self.graph, args, native, ours)


def _copy(graph: Graph) -> Graph:
    new = Graph()
    copies: dict[Node, Node] = {}
    new.output(new.graph_copy(graph, copies))
    for old, made in copies.items():
        made.meta = dict(old.meta)
    return new


def _unsuitable(graph: GraphModule) -> str:
    """Why a graph is left alone as a whole."""
    for node in graph.graph.nodes:
        if node.op in ("call_module", "call_method"):
            return f"the graph calls {node.target}"
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
            return f"{short_name(node)} changes a tensor in place"
        if any(v.device.type != "cpu" for v in values_of(node)):
            return "not all tensors are on the CPU"
        if any(isinstance(e, torch.SymInt) for v in values_of(node) for e in v.shape):
            return "sizes are symbols"
    return ""


class _Making:
    """One preparation: the walks over a graph with its inputs."""

    def __init__(
        self,
        source: GraphModule,
        args: list[Any],
        record: Record,
        pool: ThreadPoolExecutor,
        end: float,
        raced: bool,
        designs: int,
    ) -> None:
        self.source, self.args, self.record, self.pool, self.end, self.raced = source, args, record, pool, end, raced
        self.designs = designs
        self.seconds = node_seconds(source, args) if raced else {}
        self.record.before = by_operator(self.seconds)
        self.trials: dict[str, Trial] = {}
        self.keys: dict[Extract, str] = {}

    def make(self) -> GraphModule | None:
        """The graph with our pieces in it, or None where there are none."""
        able = {n for n in self.source.graph.nodes if n.op == "call_function" and designable(n)}
        banned: frozenset[Node] = frozenset()
        products = [n for n in able if (short_name(n) in PRODUCTS and self.raced) or doubtful(n)]
        alone = {n: self._alone(n) for n in products}
        self._try(list(alone.values()), ALONE)
        banned |= {n for n, extract in alone.items() if not self._finding(extract).used}
        best: list[Extract] = []
        for _ in range(ROUNDS):
            ours = sides(self.source, (able - banned).__contains__)
            parts, order = pieces(self.source, ours)
            extracts = [Extract(part) for part in parts]
            self._try(extracts, 1.0)
            best = [e for e in extracts if self._wins(e)]
            lost = [e for e in extracts if e not in best]
            more = {n for e in lost for n in self._given_up(e)} - banned
            if not more:
                break
            banned |= more
        self.record.rows = self._table(extracts, alone)
        self.record.keys = [self.keys[e] for e in best]
        if not best:
            return None
        made = _assembled(self.source, best, order, self.trials, self.keys)
        self.record.after = by_operator(node_seconds(made, self.args)) if self.raced else {}
        return made

    def _alone(self, node: Node) -> Extract:
        """A product with the views that only it reads and the parts of its results."""
        inside = sides(self.source, {node}.__contains__)
        return Extract([n for n in self.source.graph.nodes if n in inside])

    def _try(self, extracts: list[Extract], least: float) -> None:
        """Designs and builds what is new, then one eager run of the graph on the way of which each new piece is judged."""
        due: dict[Extract, Trial] = {}
        for extract in sorted(extracts, key=self._taken, reverse=True):  # the dearest first: the time may end
            trial = Trial.of(extract.module, extract.fakes, _strides(extract), raced=self.raced, designs=self.designs)
            known = self.trials.setdefault(trial.key, trial)
            self.keys[extract] = trial.key
            if known is trial and trial.finding is None:
                if time.monotonic() > self.end:
                    trial.finding = Finding(False, why="the time for preparing was over")
                    continue
                trial.begin(extract.fakes, self.pool)
                if trial.finding is None:
                    due[extract] = trial
        for trial in due.values():
            trial.wait()  # compilers beside a race would be the load that it must not be run under
        if due:
            _Walk(self.source, [e for e in extracts if e in due], due, least).run(*self.args)

    def _taken(self, extract: Extract) -> float:
        """Eager's seconds for a piece."""
        return sum(self.seconds.get(n, 0.0) for n in extract.nodes)

    def _finding(self, extract: Extract) -> Finding:
        found = self.trials[self.keys[extract]].finding
        assert found is not None
        return found

    def _wins(self, extract: Extract) -> bool:
        """A product that was let in at a little less than a library's speed must not stay alone."""
        finding = self._finding(extract)
        return finding.used and finding.won

    def _given_up(self, extract: Extract) -> set[Node]:
        """Which nodes of a piece that is not used go to eager, so that the rest may try again."""
        finding = self._finding(extract)
        computing = {n for n in extract.nodes if not is_view(n) and n.target is not operator.getitem}
        for kind in (
            {n for n in computing if finding.operator and finding.operator.removeprefix("aten.") == short_name(n)},
            {n for n in computing if short_name(n) in PRODUCTS},
        ):
            if kind and kind != computing:
                return kind
        return computing

    def _table(self, extracts: list[Extract], alone: dict[Node, Extract]) -> list[Row]:
        rows: dict[str, Row] = {}
        whole = sum(self.seconds.values()) or 1.0
        inside = {n for e in extracts if self._wins(e) for n in e.nodes}
        for extract in [*extracts, *(e for n, e in alone.items() if n not in inside)]:
            key, finding = self.keys[extract], self._finding(extract)
            if key in rows:
                rows[key].times += 1
                rows[key].share += self._taken(extract) / whole
            else:
                share = self._taken(extract) / whole
                rows[key] = Row(extract.operators, self._wins(extract), finding.gain, finding.eager, finding.why, 1, share)
        return sorted(rows.values(), key=lambda row: -row.share)


def _strides(extract: Extract) -> list[tuple[int, ...] | None]:
    """Strides that a result must have because the caller of the graph sees them; None for row-major ones and those nobody sees."""
    found: list[tuple[int, ...] | None] = []
    for node in extract.outputs:
        value = node.meta["val"]
        seen = any(u.op == "output" or "as_strided" in str(u.target) for u in node.users)
        found.append(None if value.is_contiguous() or not seen else tuple(value.stride()))
    return found


class _Walk(torch.fx.Interpreter):  # type: ignore[misc]
    """One eager run; right before the last node of a piece would run, its inputs are there and it is judged."""

    def __init__(self, module: GraphModule, extracts: list[Extract], due: dict[Extract, Trial], least: float) -> None:
        super().__init__(module)
        self.due, self.least = due, least
        order = {n: k for k, n in enumerate(module.graph.nodes)}
        self.at: dict[Node, list[Extract]] = {}
        for extract in extracts:
            last = max((n for n in extract.inputs), key=lambda n: order[n], default=None)
            where = next((n for n in module.graph.nodes if last is None or order[n] > order[last]), None)
            if where is not None:
                self.at.setdefault(where, []).append(extract)
        # What a piece reads must live until it is judged.
        for where, waiting in self.at.items():
            for extract in waiting:
                for source in extract.inputs:
                    for node, ended in self.user_to_last_uses.items():
                        if source in ended and order[node] < order[where]:
                            ended.remove(source)
                            self.user_to_last_uses.setdefault(where, []).append(source)
                            break

    def run_node(self, n: Node) -> Any:
        for extract in self.at.get(n, []):
            self.due[extract].judge([self.env[source] for source in extract.inputs], least=self.least)
        return super().run_node(n)


def _assembled(
    source: GraphModule, extracts: list[Extract], order: list[Node], trials: dict[str, Trial], keys: dict[Extract, str]
) -> GraphModule:
    """The graph with one call for each piece."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    callables: dict[str, Any] = {}
    names: dict[str, str] = {}
    home = {n: e for e in extracts for n in e.nodes}
    for node in source.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            copies[node] = graph.node_copy(node, lambda n: copies[n])
            if node.op == "get_attr":
                callables[str(node.target)] = getattr(source, str(node.target))
    for node in order:
        extract = home.get(node)
        if extract is None:
            copies[node] = graph.node_copy(node, lambda n: copies[n])
            if short_name(node) in ("view", "_unsafe_view"):  # a piece's result is row-major where eager's may not be
                copies[node].target = torch.ops.aten.reshape.default
        elif node is extract.nodes[0]:
            key = keys[extract]
            if key not in names:
                names[key] = f"piece_{len(names)}"
                callables[names[key]] = trials[key].piece()
            called = graph.create_node("call_module", names[key], tuple(copies[n] for n in extract.inputs))
            for place, output in enumerate(extract.outputs):
                copies[output] = called if len(extract.outputs) == 1 else graph.call_function(operator.getitem, (called, place))
    results = next(n for n in source.graph.nodes if n.op == "output")
    graph.output(torch.fx.map_arg(results.args[0], lambda n: copies[n]))
    return GraphModule(callables, graph)
