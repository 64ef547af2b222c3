"""Verdicts, findings and caveats as text: when they apply, and what to do about them.

A verdict is explained by the paths through the decision tree that lead to it: the questions, and where each answer leads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncuroof import formatting
from ncuroof.demand import Fix
from ncuroof.diagnosis import load_rules
from ncuroof.diagnosis.conditions import Condition
from ncuroof.diagnosis.finding import Finding
from ncuroof.diagnosis.rules import VERDICT_PREFIX, Caveat, Node
from ncuroof.metrics import Catalogue, load_catalogue
from ncuroof.metrics.catalogue_types import ByLine
from ncuroof.metrics.families import USER, load_families
from ncuroof.present.explanations.meanings import findings_in_plain_words
from ncuroof.present.sentences.collect_options import collect_options

RULE = "\f"
"""Line after which the rule follows: it is shown on request, as it is for those who doubt or change it."""

_YES, _NO, _NOT_KNOWN = "yes", "no", "not known"


def _fix_lines(fix: Fix) -> Iterator[str]:
    """Yield what a fix removes, frees and adds by resource, and what else shortens the time."""
    for word, amounts in (("removes", fix.removes), ("frees", fix.frees)):
        yield from (f"  {word} of {resource}: {amount}" for resource, amount in amounts.items())
    yield from (f"  adds to {resource}: {formula.text}" for resource, formula in fix.adds.items())
    yield from (f"  {effect}: {amount}" for effect, amount in fix.effects().items() if amount is not None)


def finding_lines(name: str) -> Iterator[str]:
    """Yield the explanation of a finding: what it means, what to do; by rule, when it fires, what it saves, and what to collect."""
    finding, catalogue = load_rules().findings[name], load_catalogue()
    yield from (f"{finding.id}: finding, {finding.title}", "", findings_in_plain_words()[name])
    yield from ("", "What to do:", f"  {finding.advice.text(USER)}")
    yield from (RULE, "")
    yield f"For verdicts {', '.join(finding.verdicts)}" + (
        f"; limiters {', '.join(finding.limiters)}." if finding.limiters else "."
    )
    yield from ("", "Fires when:", *_conditions(finding), *_names(finding), *_replaced(finding), *_covered(finding))
    if finding.fix is not None:
        yield from (
            "",
            "What fixing it removes (docs/savings.md says what follows from that):",
            *_fix_lines(finding.fix),
        )
    if finding.waste_by_level:
        yield from ("", "Unneeded bytes:")
        yield from (f"  {level}: {formula.text}" for level, formula in finding.waste_by_level.items())
    if others := [f"  {family}: {advice}" for family, advice in _advice(finding)]:
        yield from ("", "What to do in kernels of:", *others)
    if finding.lines:
        yield from ("", "Attributed to the source lines with the most of:")
        yield from (f"  {_by_line(catalogue.by_line[measure])}" for measure in finding.lines)
    collect = _collect(finding.evidence, catalogue)
    if collect:
        yield from ("", f"Collect its evidence with: {collect}")


def _by_line(measure: ByLine) -> str:
    only = [f"{name} is {', '.join(f'{code:g}' for code in codes)}" for name, codes in measure.only.items()]
    where = f", where {' and '.join(only)}" if only else ""
    return f"{measure.label}: {' or '.join(formula.text for formula in measure.formulas)}{where}"


def _advice(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield the finding's advice by family and for kernel-name variants, without what a family's caller can always do."""
    variants = [(each.described(), each.advice) for each in finding.advice.variants]
    of_variants = {advice for _, advice in variants}
    for family in reversed(tuple(load_families().values())):
        advice = finding.advice.text(family.name)
        of_others = {finding.advice.text(family.parent), family.advice, family.advice_from_pytorch}
        if advice not in of_variants | of_others:
            yield family.name, advice
    yield from variants


def caveat_lines(name: str) -> Iterator[str]:
    """Yield the explanation of a caveat: where it holds, and what follows."""
    caveat = load_rules().caveats[name]
    yield from (f"{name}: caveat", "", caveat.doc)
    if caveat.explained_by:
        yield from ("", f"Likely causes, most likely first: {', '.join(caveat.explained_by)}.")
    if caveat.weakens:
        yield from ("", "It lowers the verdict's confidence by one step.")
    yield from (RULE, "", "Holds where:", *_conditions(caveat))


def _conditions(rule: Finding | Caveat) -> Iterator[str]:
    yield from (f"  {condition(each)}" for each in rule.all_of)
    if rule.any_of:
        yield f"  any of: {'; '.join(map(condition, rule.any_of))}"


def _names(finding: Finding) -> Iterator[str]:
    if finding.name_pattern:
        yield f"  kernel name matches {finding.name_pattern}"
    if finding.excluded_name_pattern:
        yield f"  kernel name does not match {finding.excluded_name_pattern}"


def _covered(finding: Finding) -> Iterator[str]:
    for other in load_rules().findings.values():
        if finding.id in other.covers:
            yield f"  {other.id} does not apply, which says the same in particular"


def _replaced(finding: Finding) -> Iterator[str]:
    if finding.instead_of:
        yield f"  or {' and '.join(finding.instead_of)} both apply, in whose place it then stands"


def _collect(evidence: Sequence[str], catalogue: Catalogue) -> str:
    by_name = {quantity.name: quantity.collect for quantity in catalogue.quantities}
    return collect_options(options for name in evidence if (options := by_name.get(name)))


def path_lines(verdict: str, nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the numbered questions from which a verdict can be reached, with the answers that lead towards it.

    Args:
        verdict: name of the verdict.
        nodes: of the tree, parents before children; the first is the root.
    """
    goal = VERDICT_PREFIX + verdict
    leading: dict[str, dict[str, list[str]]] = {}
    for node in reversed(nodes):
        answers = {
            target: given
            for target, given in answers_by_target(node, nodes).items()
            if target == goal or target in leading
        }
        if answers:
            leading[node.id] = answers
    asked = [node for node in nodes if node.id in leading]
    number_by_id = {node.id: str(number) for number, node in enumerate(asked, start=1)}
    for node in asked:
        ways = (
            f"{' or '.join(given)} → {number_by_id.get(target, verdict)}" for target, given in leading[node.id].items()
        )
        yield f"  {number_by_id[node.id]}. {node.question} ({condition(node.condition)}): {', '.join(ways)}"


def node_lines(node: Node, nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the explanation of a question: what it compares, and the question or verdict to which each answer leads.

    Args:
        node: of the tree.
        nodes: of the tree, parents before children; the first is the root.
    """
    yield from (f"{node.id}: question of the decision path", "", node.question, "")
    yield f"Asked: {condition(node.condition)}"
    for target, given in answers_by_target(node, nodes).items():
        verdict = target.removeprefix(VERDICT_PREFIX)
        yield f"  {' or '.join(given)} → {target if verdict == target else f'verdict {verdict}'}"
    if node.source:
        yield from ("", f"Source: {node.source}")


def answers_by_target(node: Node, nodes: Sequence[Node]) -> dict[str, list[str]]:
    """Return the answers to a question by where they lead; "not known" only if its quantity can be missing."""
    ways = [(node.yes, _YES), (node.no, _NO)]
    if _can_be_missing(node, nodes):
        ways.append((node.unknown, _NOT_KNOWN))
    targets: dict[str, list[str]] = {}
    for target, answer in ways:
        targets.setdefault(target, []).append(answer)
    return targets


def _can_be_missing(node: Node, nodes: Sequence[Node]) -> bool:
    """Return whether the quantity of a question can be missing: unless every question that leads to it proves it known."""
    if node.condition.if_unknown is not None:
        return False
    before = [parent for parent in nodes if node.id in (parent.yes, parent.no, parent.unknown)]
    return not before or not all(_settles(parent, node) for parent in before)


def _settles(parent: Node, node: Node) -> bool:
    """Return whether reaching `node` through `parent` proves its quantity known; only a question about the same quantity can."""
    if parent.condition.quantity != node.condition.quantity:
        return False
    if (if_unknown := parent.condition.if_unknown) is not None:
        return node.id != (parent.yes if if_unknown else parent.no)
    return parent.unknown != node.id


def condition(asked: Condition) -> str:
    """Return a condition as text: "occupancy.waves ≥ 1", or "occupancy.waves ≥ 1 or unknown"."""
    if asked.op is None:
        return str(asked)
    addition = " or unknown" if asked.if_unknown else ""
    return f"{asked.quantity} {formatting.operator(asked.op)} {asked.threshold:g}{addition}"
