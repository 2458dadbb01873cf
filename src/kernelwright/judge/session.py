"""One verdict in the making: the steps from an opened task to a judged track, over a conversation with both workers.

In: a task and a kernel. Out: nothing but `Rejected` when the kernel fails, and the facts that a verdict reports. Headers and
descriptors are only relayed; no tensor is looked at here, except byte for byte (are held outputs still what they were?).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from kernelwright.compiler.language import readable
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.core.torch_operators import judge_calls
from kernelwright.core.verdict import Build, CompiledFor, Status, Trials
from kernelwright.judge.call_blocks import Blocks
from kernelwright.judge.conversation import Times
from kernelwright.judge.device import nodes
from kernelwright.judge.held import HELD_BYTES, Held
from kernelwright.judge.honesty import sampling, trace
from kernelwright.judge.offdevice import Setting, compiled_for, does_not_fit
from kernelwright.judge.rejection import Rejected, from_channel, from_finding
from kernelwright.judge.servers import CANDIDATE, REFEREE
from kernelwright.workers.channel import ChannelError, close_all
from kernelwright.workers.exclusive import Exclusive
from kernelwright.workers.fork_server import ForkServer
from kernelwright.workers.limits import GIB, Limits
from kernelwright.workers.sampling import Sighting

MESSAGE_SECONDS = 0.002
"""Of a call's time as the parent sees it, what two messages may be on a busy machine."""
TRIAL_SECONDS, TRIAL_RUNS = 1.8, 6
"""Processor time that trials may take beyond the first few, and runs of eager beside it: a verdict's cost follows the task."""
TICKS = 0.05
"""Seconds of processor time from which they can be trusted: they come in ticks."""
LOOKS = 8
"""Rushes that a second look may take."""
FEWEST_TRIALS, INTERPRETED_SECONDS, EMULATED_SECONDS = 6, 3.0, 20.0
"""Without its device a kernel is slow: once its process has worked for so many seconds, only the first few trials are run (three
seeds, another distribution). Processor time, so that a busy machine does not make the judge milder. What is executed as compiled is
fast once it is built: there the limit is for kernels that are slow themselves."""


class Session(Blocks):
    """One verdict in the making."""

    def __init__(
        self,
        server: ForkServer,
        task: Task,
        kernel: Kernel,
        threads: int,
        times: Times,
        exclusive: Exclusive,
        setting: Setting | None = None,
    ) -> None:
        super().__init__(server, task, kernel, threads, times, exclusive, setting)
        self.compiled: dict[str, CompiledFor] = {}
        self._launched = 0
        self.trials: list[dict[str, Any]] = []
        self.known: dict[str, Any] = {}
        """What another referee of this task has found out, and (`learnt`) what this one has."""
        self.learnt: dict[str, Any] | None = None
        self.varying: dict[str, Any] | None = None
        self.places: list[str] = []
        """Other sizes that were tried, in words."""
        self.timed_trials: dict[int, str] = {}
        self.reference = ""
        self.trials_passed = 0
        self.library_calls: list[str] = []
        self.warnings: list[str] = []
        self.level = "none"
        self._baseline: set[str] = set()
        self._operators: set[str] = set()
        self._compiler = False
        self._copied = 0
        self._held: list[Held] = []
        self._named = False
        self._init: Any = None
        self._init_fds: list[int] = []
        self._align = self._dice.getrandbits(32)
        self._last_tree: Any = None
        self._refilled = False

    def __exit__(self, *_: object) -> None:
        close_all([held.fd for held in self._held if held.fd >= 0])
        close_all(self._init_fds)
        self._init_fds = []
        super().__exit__(*_)

    # -- the steps -----------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Have the referee run the task file; a bad one is the user's error, not the kernel's."""
        self.referee = self.server.spawn(REFEREE, sandboxed=False, limits=Limits(memory=1 << 46, file_bytes=1 << 46))
        reply, fds = self.ask_referee({"op": "open", **self.task.as_json(), "known": self.known})
        self.facts = reply["facts"]
        self._init, self._init_fds = reply["header"], fds

    def load(self) -> None:
        """Spawn the candidate, have it build and construct, and settle the weights."""
        device = self.setting.device if self.setting else ""
        self.candidate = self.server.spawn(
            CANDIDATE,
            sandboxed=True,
            limits=candidate_limits(self.facts, device),
            readable=readable(self.kernel.dsl),
            devices=nodes(self.setting.targets[0]) if device and self.setting else (),
            hidden=() if self.interpreted else ("torch._inductor",),
        )
        self.level = self.candidate.level
        if self.level == "none":
            self.warnings.append("NO SANDBOX: this machine offers neither namespaces nor landlock; the kernel ran unconfined")
        process = self.candidate.process()
        self._baseline = trace.mapped_files(process) if process else set()
        # An interpreter's time is spent in Python and numpy: where it goes says nothing about a kernel that runs in it.
        if self.setting is None and not self.candidate.observe():
            self.warnings.append(
                "where the time goes could not be observed from outside (no perf events); only the trace was used"
            )
        try:
            reply, fds = self.ask_candidate(
                {
                    "op": "load",
                    "source": self.kernel.source,
                    "class": "ModelNew",
                    "init": self._init,
                    "seed": self.facts["seed"],
                    "threads": self.threads,
                    "runtime": self.setting.runtime if self.setting else None,
                    "target": self.setting.sheet() if self.setting else None,
                    "device": device,
                },
                self._init_fds,
                doing="loading the kernel",
                seconds=self.times.build,
            )
            close_all(fds)
        except Rejected:
            close_all(self._init_fds)
            self._init_fds = []
            raise
        names = {str(entry[0]): list(entry[1]) for entry in _entries(reply.get("state"))}
        answer, fds = self.ask_referee({"op": "weights", "names": names})
        if answer.get("finding"):
            close_all(fds)
            raise from_finding(answer["finding"])
        self._named = bool(fds)
        if fds:
            try:
                self.ask_candidate({"op": "weights", "weights": answer["header"]}, fds, doing="loading the weights", seconds=60)
            finally:
                close_all(fds)

    def load_again(self) -> None:
        """The same kernel in a fresh process, warm: what a first process showed by chance (where its memory lies, a loaded moment)
        it does not show again."""
        self.running().stop()
        close_all([held.fd for held in self._held if held.fd >= 0])
        self._held = []
        self.load()
        for _ in range(2):
            self._rush_block(1)

    def run_trials(self, budget_s: float) -> None:
        """Every planned trial, one of them traced, and the first one again at the end: a call counter or a race shows there, and
        so does a kernel that counts on aligned pointers, since these inputs start at odd elements."""
        reply, _ = self.ask_referee({"op": "plan", "budget_s": min(budget_s, TRIAL_SECONDS)})
        planned = list(reply["trials"])
        sized = {number: str(trial["place"]) for number, trial in enumerate(planned) if trial.get("place")}
        self.varying = reply.get("varying")
        self.learnt = reply.get("learnt")
        self.timed_trials = {number: sized[number] for number in reply.get("timed_trials") or ()}
        self.reference = str(reply["reference"])
        strided = {number for number, trial in enumerate(planned) if trial.get("strided")}
        # Never the first call: preparing weights once (packing, folding) is no part of the work per call.
        fewest = FEWEST_TRIALS + sum(number < FEWEST_TRIALS for number in sized)
        near = fewest if self.interpreted else sum(not trial.get("special") for trial in planned)
        likely = [number for number in range(1, min(near, len(planned))) if number not in strided and number not in sized]
        traced = self._dice.choice(likely or [0])
        begun, both, once = self.running().cpu_seconds(), self._processor_seconds(), float("inf")
        enough = min(budget_s, TRIAL_SECONDS) + TRIAL_RUNS * float(self.facts["eager_seconds"]) * self.threads
        most = EMULATED_SECONDS if self.setting and self.setting.execution == "emulator" else INTERPRETED_SECONDS
        for number in range(len(planned)):
            slow = self.interpreted and self.running().cpu_seconds() - begun > most
            if (
                not self.interpreted
                and number >= fewest
                and self._processor_seconds() - both + number * self._call_seconds > enough
            ):
                break
            if self.setting and slow and number >= fewest:
                left = len(planned) - number
                self.warnings.append(
                    f"{left} of {len(planned)} trials were left out: the {self.setting.execution} is too slow for them"
                )
                break
            if planned[number].get("special"):
                self._advise(number)
                continue
            before = self.running().cpu_seconds()
            if number not in sized:
                self._run_trial(number, traced=number == traced, hold=self._may_hold(), strided=number in strided)
                once = min(once, self.running().cpu_seconds() - before)
            elif self.interpreted and once * float(planned[number]["grows"]) > 2 * INTERPRETED_SECONDS:
                self.warnings.append(
                    f"left out: the {self.setting.execution if self.setting else ''} is too slow for {sized[number]}"
                )
                continue
            else:
                self._run_sized(number, sized[number])
            self.trials.append(planned[number])
        for few in (True, False):
            self._renew_weights(few)
            if few and self._named:
                self._run_trial(0, traced=False, hold=False)
        # A GPU's memory starts at aligned addresses, and tensor descriptors count on it.
        self._run_trial(0, traced=False, hold=False, skew=self.setting is None)
        self._look_at_held(range(len(self._held)))

    def try_once(self) -> None:
        """The first trial alone: the task's own inputs, through the checks of every trial."""
        self.ask_referee({"op": "plan", "budget_s": 0.1})
        self._run_trial(0, traced=False, hold=False)

    def _run_sized(self, number: int, place: str) -> None:
        """A trial at other sizes: what it took says nothing about calls at the task's own. Half of them are traced, so that a library
        that only other sizes go to is seen."""
        kept = self._call_seconds, self._launched, self._copied
        try:
            self._run_trial(number, traced=self._dice.random() < 0.5, hold=False)
        except Rejected as rejected:
            raise rejected.at(place) from rejected
        self._call_seconds, self._launched, self._copied = kept
        self.places.append(place)

    def _advise(self, number: int) -> None:
        """A trial whose outcome is a warning: honest kernels differ in what they make of NaN, and a user should know."""
        if self.interpreted:
            return
        try:
            self._run_trial(number, traced=False, hold=False)
        except Rejected as rejected:
            if rejected.status is not Status.wrong_values:
                raise
            self.warnings.append(f"where inputs are infinite or NaN the kernel differs from the reference: {rejected.reason}")

    def _renew_weights(self, few: bool) -> None:
        """Other weights by `load_state_dict` for the calls to come, the first trial's repetition among them: whoever has packed
        them once and for all is wrong now. At first only a `few` elements change, which a checksum of some does not see."""
        if not self._named:
            return
        answer, fds = self.ask_referee({"op": "renew", "few": few})
        try:
            self.ask_candidate({"op": "weights", "weights": answer["header"]}, fds, doing="loading the weights", seconds=60)
        finally:
            close_all(fds)

    def look_back(self) -> None:
        """Two of the trials' outputs once more, after the hundreds of calls of the rush and the clock: a ring of buffers that is
        longer than the trials are has come round by now."""
        self._look_at_held(self._dice.sample(range(len(self._held)), min(2, len(self._held))))
        self.ask_candidate({"op": "forget"}, doing="handing over outputs", seconds=60)

    def judge_track(self, track: str) -> None:
        """Decide from what was seen whether the kernel itself did the work."""
        assert self.candidate is not None
        process = self.candidate.process()
        foreign = trace.foreign_libraries(process, self._baseline) if process else []
        calls, forbidden = judge_calls(self._operators, track)
        self.library_calls = [*calls, *foreign]
        if forbidden:
            allowed = (
                "no library to compute"
                if track == "pure"
                else "only library GEMM, convolution, sorting, FFT and linear algebra beside the kernel"
            )
            raise Rejected(
                Status.cheating,
                f"track {track} allows {allowed}, but forward called torch operators: {', '.join(forbidden[:6])}",
            )
        if self.setting and self.interpreted and not self._launched:
            raise Rejected(
                Status.cheating, f"the file is judged as {self.setting.dsl}, but forward launched no {self.setting.dsl} kernel"
            )
        if self._compiler and track == "pure":
            raise Rejected(Status.cheating, "track pure allows no library to compute, but the kernel used torch.compile")
        if self._odd_time(track):
            self._look_again()
        self.judge_time(track)
        if foreign and track == "pure":
            raise Rejected(
                Status.cheating,
                f"track pure allows no library to compute, but the kernel loaded {foreign[0].rsplit('/', 1)[-1]}",
            )

    def judge_time(self, track: str) -> None:
        """The second witness: where the time of all calls so far was spent, seen from outside. Asked again after timing."""
        odd = self._odd_time(track)
        if odd:
            raise Rejected(Status.cheating, f"track pure allows no library to compute, but {odd}")

    def _look_again(self) -> None:
        """A loaded moment passes, a habit stays: other samples decide, if they can be had."""
        first, worker = self.running().seen, self.running()
        worker.seen = Sighting()
        for _ in range(LOOKS):
            self.rush()
            if sampling.working(worker.seen) >= 3 * sampling.FEW:
                return
        worker.seen = first

    def _odd_time(self, track: str) -> str:
        if self.setting is not None or track != "pure":
            return ""
        return sampling.suspicion(self.running().seen, self._copied)

    def compile_for_targets(self) -> None:
        """Have what was launched compiled for each target: an interpreter accepts what a compiler does not."""
        assert self.setting is not None
        for number, target in enumerate(self.setting.targets):
            doing = f"compiling for {target.title} ({target.arch})"
            reply, fds = self.ask_candidate(
                {"op": "compile_for", "target": self.setting.sheet(number)}, doing=doing, seconds=self.times.build
            )
            close_all(fds)
            figures = compiled_for(target, reply, self.facts)
            why = does_not_fit(target, figures)
            if why:
                raise Rejected(Status.build_failed, f"{doing}: {why}", build=Build(message=why))
            self.compiled[target.name] = figures
            told = [str(note)[:300] for key in ("notes", "not_profiled") for note in _entries(reply.get(key))]
            self.warnings += [note for note in told if note not in self.warnings]

    def flags(self) -> list[str]:
        """What the referee's null candidates say about the task."""
        reply, _ = self.ask_referee({"op": "flags"})
        return [str(flag) for flag in reply["flags"]]

    def trials_run(self) -> Trials:
        """What was run so far, for the verdict."""
        own = [
            trial
            for trial in self.trials
            if trial.get("distribution") == "own" and not (trial.get("strided") or trial.get("place"))
        ]
        return Trials(
            seeds=len({trial.get("seed") for trial in own}),
            distributions=tuple(dict.fromkeys(str(trial.get("distribution")) for trial in self.trials)),
            shapes=len({trial.get("workload") for trial in self.trials}),
            noncontiguous=sum(bool(trial.get("strided")) for trial in self.trials),
            reference=self.reference,
        )

    # -- one trial -----------------------------------------------------------------------------------------------------------

    def _run_trial(self, number: int, *, traced: bool, hold: bool, skew: bool = False, strided: bool = False) -> None:
        drawn, fds = self.ask_referee({"op": "draw", "trial": number})
        seconds = self._call_limit()
        # Half of the calls find their data where the last ones lay: a cache keyed by pointers must then be wrong.
        if self._dice.random() < 0.5:
            self._align = self._dice.getrandbits(32)
        try:
            if traced:
                self.ask_candidate({"op": "trace_on"}, doing="a call of forward", seconds=seconds)
            header = {"size": drawn["header"]["size"], "tree": {"l": [drawn["header"]["tree"]]}}
            turned = drawn.get("turned")
            message = {"op": "time_prepare", "header": header, "align": self._align, "skew": skew, "turned": turned}
            # Some calls find new values in the very same tensor objects, where their layout allows it.
            if header["tree"] == self._last_tree and not skew and (not self._refilled or self._dice.random() < 0.5):
                message = {"op": "refill", "header": header, "turned": turned}
                self._refilled = True
            self._last_tree = header["tree"]
            self.ask_candidate(message, fds, doing="receiving inputs", seconds=60 + seconds)
        finally:
            close_all(fds)
        started, begun = time.monotonic(), self.running().cpu_seconds()
        self.ask_candidate({"op": "time_go"}, doing="forward", seconds=seconds)
        # What it took of processors where that is less: on a busy machine waiting for one is most of the time on the wall.
        took, processor = time.monotonic() - started - MESSAGE_SECONDS, self.running().cpu_seconds() - begun
        took = min(took, processor) if processor >= TICKS else took
        self._call_seconds = min(self._call_seconds or 1e9, max(1e-5, took))
        if traced or strided or not self.trials:
            # The profiler's own work, making inputs contiguous, and what a first call prepares once, say nothing about the calls
            # to come.
            self.running().seen = Sighting()
        if traced:
            seen, _ = self.ask_candidate({"op": "trace_off"}, doing="a call of forward", seconds=seconds)
            self._operators |= {str(name) for name in _entries(seen.get("operators"))}
            self._compiler = seen.get("compiler") is True
            launched = seen.get("launches")
            self._launched = launched if type(launched) is int else 0
            copied = seen.get("copied")
            self._copied = min(copied, self._most_copied()) if type(copied) is int and copied > 0 else 0
        part = self._some_rows() if turned else None
        reply, sent = self.ask_candidate(
            {"op": "collect", "call": 0, "hold": hold, "part": part}, doing="handing over outputs", seconds=60 + seconds
        )
        try:
            if reply.get("odd"):
                raise Rejected(Status.cheating, str(reply["odd"])[:300])
            if len(sent) != 2:
                raise Rejected(Status.cheating, "the kernel tampered with the judge's channel: a call handed over no outputs")
            message = {
                "op": "check",
                "trial": number,
                "header": reply.get("outputs"),
                "after_header": reply.get("inputs_after"),
                "part": part,
            }
            answer, _ = self.ask_referee(message, sent)
            if answer.get("finding"):
                raise from_finding(answer["finding"])
        except BaseException:
            close_all(sent)
            raise
        self.trials_passed += 1
        close_all(sent[1:])
        if hold:
            self._held.append(Held.of(reply["outputs"], sent[0]))
        else:
            close_all(sent[:1])

    def _some_rows(self) -> list[int]:
        """Of a large task's inputs, the rows that are looked at after a call: whole blocks, chosen now, but all of them at first."""
        rows = self.facts["rows"]
        count = -(-rows["batch"] // rows["block"])
        few = max(1, count // 16)
        first = self._dice.randrange(count - few + 1) if self.trials else 0
        last = first + few if self.trials else count
        return [first * rows["block"], min(last * rows["block"], rows["batch"]), *rows["carried"]]

    def _most_copied(self) -> int:
        """No kernel has reason to copy its data more often than this; what it claims beyond explains nothing."""
        return 2 * sum(int(self.facts.get(name, 0)) for name in ("input_bytes", "output_bytes", "parameter_bytes"))

    def _may_hold(self) -> bool:
        """As many outputs as fit are held until the end: a ring of buffers has to be longer than that."""
        if int(self.facts.get("output_bytes", 0)) > HELD_BYTES:
            # Not the first, which is run again at the end: a static buffer would hold its answer then.
            return len(self.trials) == 1
        return len(self._held) < 2 or (len(self._held) + 1) * int(self.facts.get("output_bytes", 0)) <= HELD_BYTES

    def _look_at_held(self, indices: Iterable[int]) -> None:
        """Outputs belong to the caller: after all later calls they must still be what they were when they were handed over. (The
        inputs have been overwritten meanwhile; an output that is one of them is excused when the reference does the same.)"""
        if self.facts.get("aliases_inputs"):
            return
        for index in indices:
            held = self._held[index]
            reply, fds = self.ask_candidate({"op": "held", "index": index}, doing="handing over outputs", seconds=60)
            try:
                if len(fds) != 1 or not held.same(reply.get("held"), fds[0]):
                    raise Rejected(
                        Status.cheating,
                        "an output changed after it was returned: it shares memory with an input or is overwritten by a later call",
                    )
            except ChannelError as error:
                raise from_channel(error, self.running(), "handing over outputs", None) from error
            finally:
                close_all(fds)


def candidate_limits(facts: dict[str, Any], device: str = "") -> Limits:
    """Room for a kernel that holds its data a dozen times; outputs and inputs travel as files, so a file may hold all of them. A
    driver maps the whole device's memory: there an address space limit would end every kernel."""
    needed = sum(int(facts.get(name, 0)) for name in ("input_bytes", "output_bytes", "parameter_bytes"))
    return Limits(memory=1 << 46 if device else 3 * GIB + 12 * needed, file_bytes=GIB + 4 * needed)


def _entries(value: Any) -> list[Any]:
    """A list from the candidate, or nothing."""
    return value if isinstance(value, list) else []
