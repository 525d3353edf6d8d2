"""The pages: each rule and each message has its place, nothing is copied by hand, no link leads nowhere."""

from __future__ import annotations

import importlib.util
import json
import posixpath
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from docs.pages import CHAPTERS, README, nav, pages
from docs.shown import EXAMPLES, FIXTURES, Example, look_alikes
from docs.wording import anchor, leading_to, wordings
from gradfix.explain import PAGES, address, page
from gradfix.registry import codemods
from gradfix.why.messages import MESSAGES, Message
from gradfix.why.said import said_in

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://example.org/project"
RULES = list(codemods())
FACTS = {"type": "torch.FloatTensor", "shape": "4, 3", "operation": "ReluBackward0", "named": "a.weight"}

each_rule = pytest.mark.parametrize("rule", RULES)
each_message = pytest.mark.parametrize("message", MESSAGES, ids=[message.name for message in MESSAGES])


@cache
def texts() -> dict[str, str]:
    return dict(pages(REPOSITORY))


def section(text: str, heading: str) -> str:
    """What stands under a heading."""
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert found, heading
    return found[1]


@each_rule
def test_a_rule_says_on_its_page_what_explain_says(rule: str) -> None:
    card = codemods()[rule].card
    text = texts()[f"rules/{rule}.md"]
    assert text.startswith(f"# {card.code} {rule}\n")
    assert page(card).partition("\n\n")[2].strip() in text
    assert card.summary in texts()["index.md"]


@each_rule
def test_a_rule_shows_a_finding_of_its_own_and_its_rewrite(rule: str) -> None:
    text, example = texts()[f"rules/{rule}.md"], Example(rule)
    finding = example.finding
    assert f"{finding.code} [{finding.impact}" in section(text, "What gradfix says")
    rewrite = section(text, "The rewrite")
    after = (FIXTURES / rule / EXAMPLES[rule] / "after.py").read_bytes()
    assert example.outcome.after == after
    assert example.diff in rewrite


@each_rule
def test_a_rule_shows_the_healthy_programs_of_its_fixtures(rule: str) -> None:
    healthy = list(FIXTURES.glob(f"{rule}/*/keep.py"))
    assert len(look_alikes(rule)) == len(healthy)
    shown = texts()[f"rules/{rule}.md"].partition("## Look-alikes that are left alone")[2]
    assert shown.count('??? quote "') == len(healthy)
    for path in healthy:
        assert path.parent.name.replace("_", " ")[1:] in shown


@each_rule
def test_what_torch_says_leads_to_the_rule_that_explains_it(rule: str) -> None:
    told = section(texts()[f"rules/{rule}.md"], "What torch says")
    for message in leading_to(rule):
        assert f"../messages.md#{anchor(message)}" in told
    finding = Example(rule).finding
    if finding.torch_says:
        assert "said" in told
        read = said_in([], finding.torch_says)
        assert read is None or rule in read.message.kinds


@each_message
def test_a_message_leads_to_the_pages_of_its_rules(message: Message) -> None:
    text = texts()["messages.md"]
    assert f"{{ #{anchor(message)} }}" in text
    own = text.partition(f"{{ #{anchor(message)} }}")[2].partition("\n## ")[0]
    assert set(re.findall(r"\(rules/(\w+)\.md\)", own)) == set(message.kinds)
    assert message.proves in own and message.then in own
    if not message.kinds:
        assert "(run.md)" in own


def test_only_what_no_rule_is_about_leads_to_no_rule() -> None:
    assert [message.name for message in MESSAGES if not message.kinds] == ["not finite"]


@pytest.mark.parametrize(
    ("message", "words"),
    [pytest.param(message, words, id=words) for message in MESSAGES for words in wordings(message)],
)
def test_gradfix_why_reads_the_words_that_are_shown(message: Message, words: str) -> None:
    filled = re.sub(r"<(\w+)>", lambda found: FACTS.get(found[1], "1"), words).replace("…", "1")
    assert any(re.search(pattern, filled) for pattern in message.patterns)


def test_optional_words_and_facts_are_shown() -> None:
    (message,) = [each for each in MESSAGES if each.name == "overwritten"]
    assert wordings(message) == [
        "needed for gradient computation has been modified by an inplace operation: [<type> [<shape>]], "
        "which is output <output> of <operation>, is at version <version>; expected version <expected>"
    ]


def links() -> list[tuple[str, str]]:
    """Each link from one page to another, with the page that it stands in."""
    found = []
    for path, text in texts().items():
        prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M)
        found += [(path, link) for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose)]
    return found


def test_no_link_between_pages_leads_nowhere() -> None:
    assert len(links()) > 100
    there = {*texts(), *(f"schemas/{file.name}" for file in (ROOT / "gradfix" / "schemas").glob("*.json"))}
    for path, link in links():
        target, _, place = link.partition("#")
        full = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
        assert full in there, (path, link)
        assert not place or f"{{ #{place} }}" in texts()[full], (path, link)


def test_links_from_the_readme_into_the_project_lead_to_its_files() -> None:
    inner = {
        link for text in texts().values() for link in re.findall(rf"\({REPOSITORY}/blob/main/([^)]+)\)", text)
    }
    assert inner
    assert [link for link in inner if not (ROOT / unquote(link.partition("#")[0])).exists()] == []


def test_every_page_is_in_the_navigation_once() -> None:
    def leaves(tree: object) -> list[str]:
        if isinstance(tree, str):
            return [tree]
        inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else []
        return [leaf for each in inner for leaf in leaves(each)]

    assert sorted(leaves(nav())) == sorted(texts())


def test_the_chapters_are_those_of_the_readme() -> None:
    """But for what stands behind a link."""
    readme = re.sub(r"<!--.*?-->\n?", "", README, flags=re.S)
    for name, (_, headings) in CHAPTERS.items():
        for heading in headings:
            own = re.split(r"^##", readme.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.M)[0]
            assert len(own) > 100
            assert bare(own) in bare(texts()[f"{name}.md"])


def bare(text: str) -> str:
    return re.sub(r"\]\([^)]*\)", "]()", text)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as they are published."""
    if importlib.util.find_spec("zensical") is None:
        pytest.skip("building the pages needs the extra `docs`, and Python 3.11")
    folder = tmp_path_factory.mktemp("pages")
    done = subprocess.run(
        [sys.executable, "-m", "docs", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def test_the_pages_are_built_where_findings_say_that_they_are(built: Path) -> None:
    for rule in RULES:
        inner = address(rule).removeprefix(f"{PAGES}/")
        html = (built / inner / "index.html").read_text("utf-8")
        assert f'<link rel="canonical" href="{address(rule)}"' in html
        assert html.count('<svg class="graph" viewBox="0 0 ') == 1 + bool(Example(rule).diff)


def test_what_is_built_asks_nobody_else_for_anything(built: Path) -> None:
    asked = re.compile(
        r'<(?:script|img|iframe)[^>]* src="(?:https?:)?//|<link[^>]*stylesheet[^>]*href="(?:https?:)?//'
    )
    assert [path for path in built.rglob("*.html") if asked.search(path.read_text("utf-8"))] == []


def test_the_words_of_torch_can_be_searched_for(built: Path) -> None:
    index = json.loads((built / "search.json").read_text("utf-8"))
    found = [
        item["location"] for item in index["items"] if "modified by an inplace operation" in item["text"]
    ]
    assert any(place.startswith("rules/inplace_overwrites_saved/") for place in found)
    assert any(place.startswith("messages/") for place in found)


def test_a_link_that_leads_nowhere_stops_the_build(built: Path, tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text("# Here\n\n[there](there.md)\n", "utf-8")
    (tmp_path / "mkdocs.yml").write_text(json.dumps({"site_name": "x", "docs_dir": "pages"}), "utf-8")
    build = [sys.executable, "-m", "zensical", "build", "--strict"]
    assert subprocess.run(build, cwd=tmp_path, capture_output=True, check=False).returncode != 0


def test_the_schemas_lie_at_their_ids(built: Path) -> None:
    for file in (ROOT / "gradfix" / "schemas").glob("*.json"):
        schema = json.loads((built / "schemas" / file.name).read_text("utf-8"))
        assert schema["$id"] == f"{PAGES}/schemas/{file.name}"


def test_the_workflow_publishes_what_the_command_builds() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "pages.yml").read_text("utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    ran = "\n".join(step.get("run", "") for step in steps)
    assert "pip install -e '.[docs]'" in ran
    assert "python -m docs\n" in f"{ran}\n"
    (upload,) = [step for step in steps if "upload-pages-artifact" in step.get("uses", "")]
    assert upload["with"]["path"] == "build/pages/site"
