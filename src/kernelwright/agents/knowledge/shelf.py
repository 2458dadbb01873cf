"""Where skills come from: ours beside each language and target, packs of other packages, and the user's own folder.

In: a language. Out: the skills that are in use. A skill of the user's folder replaces the shipped one of the same name; one that is
listed in `disabled.txt` there is not used. A pack is a package with an entry point of the group `kernelwright.skills` that names its
folder (a path), or a folder of Markdown files that is copied into the user's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelwright.agents.knowledge.skills import Skill, read
from kernelwright.compiler.language import installed, language
from kernelwright.core import plugins
from kernelwright.core.errors import ConfigError
from kernelwright.core.folders import data_folder

PACKS = "kernelwright.skills"
TARGET_NOTES = Path(__file__).parents[2] / "target"
DISABLED = "disabled.txt"


@dataclass(frozen=True)
class Placed:
    """A skill with its file and where that comes from: shipped, pack NAME, or yours."""

    skill: Skill
    path: Path
    origin: str
    disabled: bool = False
    replaces: Path | None = None


def own_folder() -> Path:
    """The user's skills; made when something is first put there."""
    return data_folder("skills")


def all_skills(dsl: str = "") -> list[Placed]:
    """Every skill for a language, or for all of them; the disabled ones too."""
    off = disabled()
    found: dict[tuple[str, str], Placed] = {}
    for path, origin in _files(dsl):
        skill = read(path)
        # One name may stand for a skill of each language: a skill of the user's replaces the one of its own language.
        key = (skill.language, skill.name)
        before = found.get(key)
        found[key] = Placed(skill, path, origin, _named(skill) in off or skill.name in off, before.path if before else None)
    return list(found.values())


def in_use(dsl: str) -> list[Skill]:
    """The skills that a run of this language may be shown."""
    return [one.skill for one in all_skills(dsl) if not one.disabled]


def find(name: str) -> Placed:
    """The skill of a name, `NAME` or `LANGUAGE/NAME`."""
    matching = [one for one in all_skills() if name in (one.skill.name, _named(one.skill))]
    if not matching:
        raise ConfigError(f"there is no skill {name!r}; `kernelwright skills list` shows all")
    if len(matching) > 1:
        raise ConfigError(
            f"{len(matching)} skills are called {name!r}; write {' or '.join(_named(one.skill) for one in matching)}"
        )
    return matching[0]


def disabled() -> set[str]:
    """The names that are switched off."""
    place = own_folder() / DISABLED
    return set(place.read_text().split()) if place.exists() else set()


def disable(name: str, *, off: bool = True) -> str:
    """Switch a skill off, or on again; its full name."""
    full = _named(find(name).skill)
    names = (disabled() - {name, full}) | ({full} if off else set())
    folder = own_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DISABLED).write_text("".join(f"{one}\n" for one in sorted(names)))
    return full


def install(folder: Path) -> list[str]:
    """Copy a folder of skills into the user's, after each has been read."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: this is no folder of skills")
    skills = {path: read(path) for path in sorted(folder.glob("*.md"))}
    if not skills:
        raise ConfigError(f"{folder}: there is no skill (*.md) in this folder")
    own_folder().mkdir(parents=True, exist_ok=True)
    for path in skills:
        (own_folder() / path.name).write_text(path.read_text())
    return [_named(skill) for skill in skills.values()]


def _files(dsl: str) -> Iterator[tuple[Path, str]]:
    for name in (dsl,) if dsl else installed():
        yield from ((path, "shipped") for path in sorted(language(name).skills.glob("*.md")))
    yield from ((path, "shipped") for path in sorted(TARGET_NOTES.glob("*.md")))
    for pack in plugins.names(PACKS):
        folder = plugins.load(pack, PACKS)
        if folder is not None:
            yield from ((path, f"pack {pack}") for path in sorted(Path(folder).glob("*.md")))
    if own_folder().is_dir():
        yield from ((path, "yours") for path in sorted(own_folder().glob("*.md")))


def _named(skill: Skill) -> str:
    return f"{skill.language}/{skill.name}"
