"""What worked, for the next task: a Lesson goes in once, and comes back ranked by words, family, language and target."""

from __future__ import annotations

import itertools
import json
import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from kernelwright.store import tables
from kernelwright.store.nouns import Kind, Lesson
from kernelwright.store.tables import Database

ANY = "any"

CANDIDATES = 200
"""Lessons that are ranked in the end: the best by words, and the newest of the family."""

WEIGHTS = {"family": 2.0, "target": 0.5}
"""What agreement is worth beside the words, which give 0 to 1: the kind of computation says more than how it was described."""


def learn(database: Database, lesson: Lesson) -> None:
    """Keep a lesson; the same one twice is one."""
    table = tables.lessons
    try:
        with database.write() as connection:
            values = {**asdict(lesson), "payload": json.dumps(lesson.payload), "digest": lesson.digest, "at": time.time()}
            added = connection.execute(table.insert().values(**values))
            if database.full_text and added.inserted_primary_key is not None:
                words = " ".join(_words(f"{lesson.text} {lesson.family}"))
                connection.execute(
                    sa.text("INSERT INTO lesson_words(rowid, words) VALUES (:id, :words)"),
                    {"id": added.inserted_primary_key[0], "words": words},
                )
    except sa.exc.IntegrityError:
        pass  # known already


def find(
    database: Database,
    query: str,
    *,
    family: str | None,
    dsl: str | None,
    target: str | None,
    kind: Kind | None,
    limit: int,
) -> list[Lesson]:
    """The lessons most worth showing, best first. A language or kind that is given is a must; family and target raise the rank."""
    table = tables.lessons
    wanted: list[sa.ColumnElement[bool]] = []
    if dsl:
        wanted.append(table.c.dsl.in_((ANY, dsl)))
    if kind:
        wanted.append(table.c.kind == kind)
    words = _words(query)
    newest = sa.select(table).where(*wanted).order_by(table.c.at.desc(), table.c.id.desc()).limit(CANDIDATES)
    with database.read() as connection:
        rows = {row.id: row for row in connection.execute(newest)}
        if family:
            rows |= {row.id: row for row in connection.execute(newest.where(table.c.family == family))}
        if database.full_text and words:
            match = sa.text("SELECT rowid FROM lesson_words WHERE lesson_words MATCH :words ORDER BY rank LIMIT 1000")
            found = connection.execute(match, {"words": " OR ".join(f'"{word}"' for word in words)}).scalars().all()
            by_words = sa.select(table).where(table.c.id.in_(found[:CANDIDATES]), *wanted)
            rows |= {row.id: row for row in connection.execute(by_words)}
    rows = {number: row for number, row in rows.items() if not tables.misfits(row, table)}  # a damaged row costs itself only
    relevance = _relevance(words, rows.values())
    scores = {
        row.id: relevance[row.id]
        + WEIGHTS["family"] * _overlap(family, row.family)
        + WEIGHTS["target"] * (bool(target) and row.target == target)
        for row in rows.values()
    }
    best = sorted((row for row in rows.values() if scores[row.id] > 0), key=lambda row: (-scores[row.id], -row.at, -row.id))
    return list(itertools.islice(_readable(best), limit))


def _readable(rows: Iterable[Any]) -> Iterator[Lesson]:
    for row in rows:
        with suppress(ValueError):  # a payload that was cut off, a kind that is none
            payload = json.loads(row.payload)
            if isinstance(payload, dict):
                yield Lesson(row.kind, row.family, row.dsl, row.target, row.text, payload)


def _relevance(words: Sequence[str], rows: Iterable[Any]) -> dict[int, float]:
    """BM25 over the candidates, scaled so that the best has 1."""
    texts = {row.id: Counter(_words(f"{row.text} {row.family}", once=False)) for row in rows}
    mean = sum(counts.total() for counts in texts.values()) / max(len(texts), 1) or 1.0
    scores = dict.fromkeys(texts, 0.0)
    for word in set(words):
        having = sum(1 for counts in texts.values() if word in counts)
        rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for number, counts in texts.items():
            often = counts[word]
            scores[number] += rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * counts.total() / mean))
    highest = max(scores.values(), default=0.0) or 1.0
    return {number: score / highest for number, score in scores.items()}


def _overlap(wanted: str | None, found: str) -> float:
    """Families may be written as several words ("norm reduction"): the shared part of both."""
    a, b = set(_words(wanted or "")), set(_words(found))
    return len(a & b) / len(a | b) if a and b else 0.0


def _words(text: str, *, once: bool = True) -> list[str]:
    """Lower-case words; `fused_rms_norm` and `RMSNorm` are several, because a query may have any of them."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    words = re.findall(r"[a-z0-9]+", split.lower())
    return list(dict.fromkeys(words))[:256] if once else words
