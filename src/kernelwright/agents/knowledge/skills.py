"""Skills: Markdown files with front matter. In: the folders of a language and of the targets, a task's families, a stage and words.
Out: the skills to show, each with the reason for which it was chosen.

    ---
    language: cpp                      a language's name, or any
    families: norm, softmax            or any
    stages: design, code, patch        when it helps: design, code, patch, improve
    title: Rows that are read twice
    ---

Choice is by family first, then by words (BM25 over the candidates), within a limit of characters. A code block marked
`python kernel` after one marked `python task` is a worked example, which the tests put before the judge.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernelwright.core.errors import ConfigError

Stage = Literal["design", "code", "patch", "improve"]
STAGES = ("design", "code", "patch", "improve")
KEYS = ("language", "families", "stages", "title")
OPTIONAL = ("version", "provenance")
"""A skill that was learnt says how often it was learnt anew, and from which runs."""
BLOCK = re.compile(r"^```python (?P<what>task|kernel)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN_CHARACTERS = 16_000
"""Of skills in one prompt: about 5,000 tokens. More of them dilute the task."""
SAME_FAMILY, FOR_ALL = 10.0, 4.0


@dataclass(frozen=True)
class Example:
    """A worked example: a task file and a kernel file for it."""

    skill: str
    task: str
    kernel: str


@dataclass(frozen=True)
class Skill:
    """One file. `name` is its stem; `text` is the body without worked examples, which are `examples`."""

    name: str
    language: str
    families: tuple[str, ...]
    stages: tuple[str, ...]
    title: str
    text: str
    examples: tuple[Example, ...] = ()
    version: int = 1
    provenance: str = ""


@dataclass(frozen=True)
class Chosen:
    """A skill and why it is shown."""

    skill: Skill
    reason: str
    score: float


def load(folders: Iterable[Path]) -> list[Skill]:
    """All skills of these folders, by name; a file without proper front matter is an error with its path."""
    return [read(path) for folder in folders for path in sorted(folder.glob("*.md"))]


def read(path: Path) -> Skill:
    """One skill file."""
    text = path.read_text()
    found = re.match(r"\A---\n(.*?)\n---\n", text, re.DOTALL)
    if found is None:
        raise ConfigError(f"{path}: a skill begins with front matter between two lines of ---")
    front = {}
    for line in found[1].splitlines():
        key, colon, value = line.partition(":")
        if not colon or key.strip() not in (*KEYS, *OPTIONAL):
            raise ConfigError(f"{path}: {line!r} is no line of front matter; known are {', '.join((*KEYS, *OPTIONAL))}")
        front[key.strip()] = value.strip()
    if missing := [key for key in KEYS if not front.get(key)]:
        raise ConfigError(f"{path}: the front matter lacks {', '.join(missing)}")
    stages = _words(front["stages"])
    if unknown := [stage for stage in stages if stage not in STAGES]:
        raise ConfigError(f"{path}: unknown stage {unknown[0]!r}; known are {', '.join(STAGES)}")
    body = text[found.end() :]
    examples = _examples(path, body)
    version = front.get("version", "1")
    if not version.isdigit():
        raise ConfigError(f"{path}: version {version!r} is no number")
    return Skill(
        path.stem,
        front["language"],
        _words(front["families"]),
        stages,
        front["title"],
        _without(body),
        examples,
        int(version),
        front.get("provenance", ""),
    )


def choose(
    skills: Sequence[Skill],
    *,
    language: str,
    families: Sequence[str],
    stage: Stage,
    words: str = "",
    limit: int = SHOWN_CHARACTERS,
) -> list[Chosen]:
    """The skills to show, best first. One that is for all families is always a candidate; one for other families never is."""
    fitting = [s for s in skills if s.language in (language, "any") and stage in s.stages]
    relevance = _relevance(words, [f"{s.title}\n{s.text}" for s in fitting])
    chosen = []
    for skill, lexical in zip(fitting, relevance, strict=True):
        shared = [family for family in families if family in skill.families]
        if not shared and "any" not in skill.families:
            continue
        reason = f"family {', '.join(shared)}" if shared else "for every kernel"
        # The task's first family is its most demanding one, and its skill comes before the others'.
        score = (SAME_FAMILY - min(families.index(f) for f in shared) if shared else FOR_ALL) + lexical
        chosen.append(Chosen(skill, reason, round(score, 3)))
    chosen.sort(key=lambda one: (-one.score, one.skill.name))
    kept, used = [], 0
    for one in chosen:
        if used + len(one.skill.text) <= limit:
            kept.append(one)
            used += len(one.skill.text)
    return kept


def nearest_examples(chosen: Sequence[Chosen], words: str, count: int) -> list[Example]:
    """The worked examples of the chosen skills that are nearest to the task, those of its own families first."""
    candidates = [(one, example) for one in chosen for example in one.skill.examples]
    relevance = _relevance(words, [example.task for _, example in candidates])
    ranked = sorted(
        zip(candidates, relevance, strict=True),
        key=lambda item: (-item[0][0].score - item[1], item[0][1].skill, item[0][1].task),
    )
    return [example for (_, example), _ in ranked[:count]]


def _relevance(words: str, texts: Sequence[str]) -> list[float]:
    """BM25 of each text for the words, scaled so that the best is 1."""
    documents = [Counter(_tokens(text)) for text in texts]
    if not documents:
        return []
    average = sum(sum(d.values()) for d in documents) / len(documents) or 1.0
    scores = []
    for document in documents:
        length, score = sum(document.values()), 0.0
        for token in set(_tokens(words)):
            having = sum(token in other for other in documents)
            weight = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
            score += weight * document[token] * 2.2 / (document[token] + 1.2 * (0.25 + 0.75 * length / average))
        scores.append(score)
    best = max(scores)
    return [score / best if best else 0.0 for score in scores]


def _tokens(text: str) -> list[str]:
    return [token for token in re.findall(r"[a-z][a-z0-9]+", text.lower().replace("_", " ")) if len(token) > 2]


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.strip("[]").split(",") if word.strip())


def _examples(path: Path, body: str) -> tuple[Example, ...]:
    blocks = [(m["what"], m["body"]) for m in BLOCK.finditer(body)]
    if [what for what, _ in blocks] != ["task", "kernel"] * (len(blocks) // 2):
        raise ConfigError(f"{path}: worked examples are pairs, a block `python task` and then a block `python kernel`")
    return tuple(Example(path.stem, task, kernel) for (_, task), (_, kernel) in zip(blocks[::2], blocks[1::2], strict=True))


def _without(body: str) -> str:
    """The body without worked examples and the heading over them."""
    return re.sub(r"\n## Worked example[^\n]*\n", "\n", BLOCK.sub("", body)).strip() + "\n"
