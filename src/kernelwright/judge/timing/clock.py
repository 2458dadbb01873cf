"""The clock: contenders' workers in, a Timing with its interval out, or the finding that somebody cheated.

How a measurement goes (parent side; imports no torch):

1. `plan_blocks`   how many calls make a block, from eager's time and the data's size alone: a slow warm-up of the candidate
                   cannot cut its own sample;
2. warm-up         one call, then one unrecorded block, for every contender;
3. processes       the rounds are shared by several fresh processes of candidate and eager where that is affordable, since where a
                   process's memory lies moves some kernels by 2x; `again` gives the next ones;
4. rounds          the referee draws fresh inputs; eager, eager again (A/A), torch.compile and the candidate run the same block
                   in shuffled order, each while the others are stopped (contender.py); then memory shows what it gives now (bandwidth.py);
5. verification    in rounds and for calls chosen at random afterwards, the candidate's timed outputs go back to the referee;
6. suspicion       what the candidate's blocks give away beside eager's (suspicion.py);
7. result          medians, bootstrap interval of the paired ratio, A/A noise (statistics.py).

The candidate's channel errors are the caller's to explain; those of trusted workers are a JudgeError.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from kernelwright.core.errors import JudgeError
from kernelwright.core.verdict import Rival, Timing
from kernelwright.judge.honesty.suspicion import Finding, cheating, outside, suspicion
from kernelwright.judge.timing.bandwidth import Rates, Streams
from kernelwright.judge.timing.contender import Block, Contender, ContenderFault, Worker, foremost
from kernelwright.judge.timing.roofline import Roofline, Work, impossible_seconds, roofline
from kernelwright.judge.timing.statistics import Interval, paired_ratio, self_noise, upper_quartile
from kernelwright.target import Target
from kernelwright.workers.channel import ChannelError, Message, close_all
from kernelwright.workers.exclusive import turn

BLOCK_SECONDS = 0.006
SLOW_BLOCK_SECONDS = 0.5
MAX_CALLS = 64
MIN_ROUNDS, MAX_ROUNDS = 7, 40
DEVICE_BLOCK_BYTES = 512 << 20
"""Of inputs and outputs in one block, where a target's sheet says nothing of a cache: all calls of a block are held until it ends."""
MAX_DEVICE_CALLS = 8
ENOUGH = 0.01
"""Half-width of the interval at which more rounds would teach nothing."""
INPUTS_CHECKED = 3
"""Timed blocks after which the inputs of a call are asked for again, too."""
SLOW_SECONDS, LARGE_CALL = 1.0, 384 << 20
"""Eager calls longer than this, or with more data, are not measured twice a round; A/A then compares neighbouring rounds."""
PROCESSES = 3
"""Of every contender but compiled ones, among which the rounds are shared."""
RELOAD_SHARE = 0.4
"""Of the clock's budget, what starting another process of the candidate may take; its build counts."""
FEWEST_ROUNDS = 3
"""In each further process."""
ON_ACCOUNT = 0.03
"""Work outside the calls, as a share of them, below which it cannot be told from the machine's own."""
NOISY = 0.15
"""A/A noise from which on the verdict warns that the figures are of little use."""
TRUSTED_SECONDS = 600.0


Again = Callable[[], tuple[Worker, Worker]]


@dataclass(frozen=True)
class Measurement:
    """Either a timing, or the finding that ends the verdict (`status`, `reason` and perhaps `mismatch`)."""

    timing: Timing | None
    finding: Finding | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The size of a block and how many rounds at least."""

    calls: int
    rounds: int
    pair_eager: bool
    checks: int = 3
    """Rounds whose outputs are checked whatever that costs."""


def plan_blocks(eager_seconds: float, call_bytes: int, last_level_cache: int) -> Plan:
    """Blocks long enough for the stopwatch, small enough that a block's data stays in cache if one call's data does."""
    by_time = max(1, int(BLOCK_SECONDS / max(eager_seconds, 1e-7)))
    by_memory = max(1, last_level_cache // 2 // max(call_bytes, 1))
    slow = eager_seconds >= SLOW_SECONDS or call_bytes >= LARGE_CALL
    rounds = 3 if slow else MIN_ROUNDS
    return Plan(min(by_time, by_memory, MAX_CALLS), rounds, not slow, 1 if slow else 3)


def measure(
    candidate: Worker,
    eager: Worker,
    compiled: Worker | None,
    referee: Worker,
    *,
    others: Mapping[str, Worker] | None = None,
    facts: dict[str, Any],
    target: Target,
    threads: int,
    budget_s: float = 5.0,
    device: bool = False,
    streams: Streams | None = None,
    again: Again | None = None,
    reload_seconds: float = 0.0,
) -> Measurement:
    """Time the candidate against its baselines. Workers must be loaded and idle; they are left paused or released. On a `device` each
    call finds a cold cache, and what eager takes there is found out in the warm-up (the facts are the host's). With `streams` the
    roofline counts the bandwidth of the same rounds. `again` starts the candidate and eager anew, which takes `reload_seconds`; it stops
    the old ones, and whoever calls asks the callers for the workers that are there then."""
    work = Work.from_facts(facts)
    eager_seconds = float(facts.get("eager_seconds") or 1e-3)
    plan = plan_blocks(eager_seconds, work.read_bytes + work.written_bytes, target.last_level_cache or DEVICE_BLOCK_BYTES)
    contenders = [Contender("candidate", candidate, 120 + 1000 * eager_seconds), Contender("eager", eager, TRUSTED_SECONDS)]
    if compiled is not None:
        contenders.append(Contender("compiled", compiled, TRUSTED_SECONDS))
    contenders += [Contender(name, worker, TRUSTED_SECONDS) for name, worker in (others or {}).items()]
    race = _Race(contenders, referee, plan, device=device, streams=streams)
    if again is not None and plan.pair_eager and not device:
        race.again, race.processes = again, max(1, min(PROCESSES, 1 + int(RELOAD_SHARE * budget_s / max(reload_seconds, 0.1))))
    try:
        with foremost():
            finding = race.run(budget_s) or race.suspicion(impossible_seconds(work, target))
    except ContenderFault as fault:
        reason = f"forward failed in a timed call: {_said(fault.reply)}"
        return Measurement(None, {"status": "crashed", "reason": reason, "reply": fault.reply})
    if finding:
        return Measurement(None, finding, tuple(race.warnings))
    timing = race.timing(
        roofline(work, race.rates.sheet(target), threads=threads), threads, int(facts.get("parameter_bytes") or 0)
    )
    return Measurement(timing, None, tuple(race.warnings))


def _said(reply: Message) -> str:
    error = reply.get("error")
    if isinstance(error, dict):
        return f"{error.get('type', 'error')}: {error.get('message', '')}"[:300]
    return str(error)[:300]


class _Race:
    """The rounds of one measurement."""

    def __init__(
        self, contenders: list[Contender], referee: Worker, plan: Plan, *, device: bool, streams: Streams | None
    ) -> None:
        self.contenders = {contender.name: contender for contender in contenders}
        self.referee = referee
        self.plan = plan
        self.device = device
        self.streams, self.rates = streams, Rates()
        self.needs: dict[str, int | None] = {}
        self.eager_call = 0.0
        self.dice = random.SystemRandom()
        self.eager_again: list[Block] = []
        self.warnings: list[str] = []
        self.verified = 0
        self.last_call = 0.0
        self.again: Again | None = None
        self.processes = 1
        self.starts = [0]
        """The rounds with which another process began."""
        # A few alignments in turn: addresses come back with other data, which is wrong for whoever remembers by address.
        self.alignments = [self.dice.getrandbits(32) for _ in range(3)]

    def run(self, budget_s: float) -> Finding | None:
        """Warm up, then rounds until the budget is spent or the interval is tight, in one process after the other; the first finding ends
        it."""
        for number in range(self.processes):
            if number and self.again is not None:
                self.contenders["candidate"].worker, self.contenders["eager"].worker = self.again()
                self.starts.append(len(self.contenders["candidate"].blocks))
            # The first has most of the rounds: who lies only after hundreds of calls must come to them.
            share = 1.0 if number == 0 else 0.5 / (self.processes - 1)
            finding = self._in_one_process(share * budget_s, FEWEST_ROUNDS if number else 0)
            if finding:
                return finding
        return None

    def _in_one_process(self, budget_s: float, fewest: int) -> Finding | None:
        for _ in range(2):  # one call each, then a block each
            self._round(record=False)
            if self.last_call > SLOW_SECONDS or not self.plan.pair_eager:
                if not self.device and not self.needs:
                    self._weigh()
                break
            if not self.device and not self.needs:
                self._weigh()
            if self.device:
                calls = min(MAX_DEVICE_CALLS, max(1, int(BLOCK_SECONDS / max(self.eager_call, 1e-7))))
                self.plan = Plan(calls, MIN_ROUNDS, pair_eager=True)
        start = time.monotonic()
        verify_seconds = 0.0
        for number in range(MAX_ROUNDS):
            spent, least = time.monotonic() - start, fewest or self._rounds()
            if number >= least and (spent > budget_s or self._tight(number)):
                break
            # Checking outputs may take a quarter of the time; a few checks are made whatever they cost.
            due = self.verified < self.plan.checks and number >= least - self.plan.checks + self.verified
            verify = due or (verify_seconds <= 0.25 * spent + 0.05 and self.dice.random() < 0.7)
            finding, seconds = self._round(record=True, verify=verify)
            verify_seconds += seconds
            if finding:
                return finding
        return None

    def _weigh(self) -> None:
        """What a call of the candidate needs of memory, and of eager."""
        draw, fds = self._ask_referee({"op": "draw_timed", "calls": 1, "seed": self.dice.getrandbits(48)})
        try:
            self.needs = {name: self.contenders[name].weigh(draw["header"], fds[0], 0) for name in ("candidate", "eager")}
        finally:
            close_all(fds)

    def suspicion(self, impossible: float) -> Finding | None:
        """What the blocks give away. A loaded moment passes, a habit stays: as many rounds again are run before anybody is accused."""
        if suspicion(self.contenders["candidate"], self.contenders["eager"], impossible) is None:
            return None
        for _ in range(self._rounds()):
            finding, _ = self._round(record=True, verify=True)
            if finding:
                return finding
        return suspicion(self.contenders["candidate"], self.contenders["eager"], impossible)

    def _calls(self) -> int:
        """Calls of the next block. A candidate far slower than eager gets shorter blocks, not fewer rounds; what it took last, by
        our own clock, decides anew each time, so that a slow start does not last."""
        return min(self.plan.calls, max(1, int(SLOW_BLOCK_SECONDS / self.last_call))) if self.last_call else 1

    def _rounds(self) -> int:
        return self.plan.rounds if self.last_call < SLOW_SECONDS else min(3, self.plan.rounds)

    @turn()
    def _round(self, *, record: bool, verify: bool = False) -> tuple[Finding | None, float]:
        seed, align = self.dice.getrandbits(48), self.dice.choice(self.alignments)
        calls = self._calls()
        draw, fds = self._ask_referee({"op": "draw_timed", "calls": calls, "seed": seed})
        finding, seconds = None, 0.0
        try:
            order = [*self.contenders, *(["eager again"] if self.plan.pair_eager else [])]
            self.dice.shuffle(order)
            for name in order:
                contender = self.contenders["eager" if name == "eager again" else name]
                # Watching delays the hand-over, so later it is done in rounds whose outputs are not asked for.
                watch = name == "candidate" and record and (not contender.blocks or (not verify and self.dice.random() < 0.3))
                try:
                    block = contender.run_block(draw["header"], fds[0], calls, align, watch=watch)
                except (ContenderFault, ChannelError) as error:
                    if name == "candidate":
                        raise
                    self._lose(contender, error)
                    continue
                if name == "eager":
                    self.eager_call = block.seconds
                if name == "candidate":
                    self.last_call = block.wall / calls
                    contender.timeout = 30 + 100 * calls * self.last_call
                if record:
                    (self.eager_again if name == "eager again" else contender.blocks).append(block)
                if name == "eager" and verify:
                    close_all(contender.fetch_outputs(prompt=True)[1])
                if name == "candidate" and verify:
                    started = time.monotonic()
                    finding = self._verify(contender, calls, prompt=not watch)
                    seconds = time.monotonic() - started
                contender.rest(account=record and not (verify and name in ("eager", "candidate")) and not watch)
        finally:
            close_all(fds)
        if self.streams and record:
            self.streams.flow(self.rates)
        return finding, seconds

    def _lose(self, contender: Contender, error: Exception) -> None:
        """Another contender failing is its own affair; without eager there is nothing to compare with."""
        if contender.name == "eager":
            raise JudgeError(f"the {contender.name} contender failed in the timed phase: {error}") from error
        del self.contenders[contender.name]
        self.warnings.append(f"{'torch.compile' if contender.name == 'compiled' else contender.name} was not timed: {error}")

    def _verify(self, contender: Contender, calls: int, *, prompt: bool) -> Finding | None:
        """Give the block's outputs to the referee, who looks at one call's, chosen only now, after they have been handed over."""
        reply, fds = contender.fetch_outputs(prompt=prompt)
        call = self.dice.randrange(calls)
        try:
            if reply.get("plain") is not True:
                return cheating("the outputs of timed calls are not plain tensors")
            headers = {"header": reply["header"], "probe_header": reply["probe_header"]}
            if self.verified < INPUTS_CHECKED:
                left, more = contender.fetch_inputs(call)
                fds += more
                headers["after_header"] = left.get("header")
            answer, rest = self._ask_referee({"op": "check_timed", "call": call, "whole": True, **headers}, fds)
            close_all(rest)
        finally:
            close_all(fds)
        self.verified += 1
        finding: Finding | None = answer.get("finding")
        if finding is None:
            return None
        if finding.get("status") == "cheating":
            return finding
        return cheating(
            f"the outputs of timed calls are wrong on fresh inputs, though untimed calls were right: {finding['reason']}"
        )

    def _ask_referee(self, message: Message, fds: list[int] | None = None) -> tuple[Message, list[int]]:
        try:
            reply, received = self.referee.channel.request(message, fds or [], timeout=TRUSTED_SECONDS)
        except ChannelError as error:
            raise JudgeError(f"the referee was lost in the timed phase: {error}") from error
        if not reply.get("ok"):
            close_all(received)
            raise JudgeError(f"the referee failed in the timed phase: {_said(reply)}")
        return reply, received

    def _tight(self, rounds: int) -> bool:
        return rounds >= 12 and self.ratio("eager").half_width < ENOUGH

    def ratio(self, contender: str) -> Interval:
        """How many times faster the candidate is than a contender, paired by rounds."""
        times = [block.seconds for block in self.contenders[contender].blocks]
        if contender == "eager" and self.eager_again:
            times = [(a + b.seconds) / 2 for a, b in zip(times, self.eager_again, strict=True)]
        return paired_ratio(times, self.candidate_seconds(), self.starts)

    def candidate_seconds(self) -> list[float]:
        """Seconds per call of each block: what its stopwatch says, but not less than our wall clock allows. The allowance for
        messages is what they cost with eager. What a kernel does outside its calls and eager does not is on its account, too."""
        candidate, eager = self.contenders["candidate"], self.contenders["eager"]
        allowance = 1.5 * upper_quartile([block.wall - block.claimed for block in eager.blocks])
        beside = outside(candidate, eager)
        if beside < ON_ACCOUNT * median(block.claimed for block in candidate.blocks):
            beside = 0.0
        return [(max(block.claimed, block.wall - allowance) + beside) / block.calls for block in candidate.blocks]

    def _other(self, name: str) -> Rival:
        ratio = self.ratio(name)
        ms = median(block.seconds for block in self.contenders[name].blocks) * 1e3
        return Rival(name=name, ms=ms, speedup=ratio.middle, speedup_low=ratio.low, speedup_high=ratio.high)

    def timing(self, limit: Roofline, threads: int, weights: int) -> Timing:
        """The figures of the verdict; `weights` are the bytes of the parameters, which every contender has."""
        candidate, eager = self.contenders["candidate"].blocks, self.contenders["eager"].blocks
        over_eager = self.ratio("eager")
        over_compile = self.ratio("compiled") if "compiled" in self.contenders else None
        again = self.eager_again or eager[1:]
        noise = self_noise([b.seconds for b in eager[: len(again)]], [b.seconds for b in again])
        if noise > NOISY:
            self.warnings.append(f"the machine was busy: eager against itself differed by up to {noise:.0%}")
        kernel = median(self.candidate_seconds())
        return Timing(
            kernel_ms=kernel * 1e3,
            eager_ms=median(block.seconds for block in eager) * 1e3,
            compile_ms=median(block.seconds for block in self.contenders["compiled"].blocks) * 1e3 if over_compile else None,
            speedup=over_eager.middle,
            speedup_low=over_eager.low,
            speedup_high=over_eager.high,
            speedup_vs_compile=over_compile.middle if over_compile else None,
            speedup_vs_compile_low=over_compile.low if over_compile else None,
            speedup_vs_compile_high=over_compile.high if over_compile else None,
            roofline_ms=limit.seconds * 1e3 if limit.seconds else None,
            roofline_fraction=limit.seconds / kernel if limit.seconds else None,
            bound=limit.bound if limit.seconds else None,
            bandwidth_gb_s=limit.bandwidth / 1e9 if limit.seconds else None,
            kernel_mb=_megabytes(self.needs.get("candidate"), weights),
            eager_mb=_megabytes(self.needs.get("eager"), weights),
            rivals=tuple(self._other(name) for name in self.contenders if name not in ("candidate", "eager", "compiled")),
            noise=noise,
            rounds=len(candidate),
            threads=threads,
            cache="cold" if self.device else "warm",
        )


def _megabytes(count: int | None, weights: int) -> float | None:
    return None if count is None else (count + weights) / 1e6
