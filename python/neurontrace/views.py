# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: small tables of HTML. Names come from other machines, so that every text is escaped."""

from __future__ import annotations

import html
from typing import Iterable

from .v1 import certificate_pb2, insight_pb2
from .v1 import operator_service_pb2 as messages

ROWS_MAX = 64


def _table(header: Iterable[str], rows: list[list[object]]) -> str:
    def line(cells: Iterable[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
    text = "<table>" + line(header, "th") + "".join(line(row, "td") for row in rows[:ROWS_MAX]) + "</table>"
    return text + (f"<p>and {len(rows) - ROWS_MAX:,} more</p>" if len(rows) > ROWS_MAX else "")


def _ranks(worker: certificate_pb2.WorkerCertificate) -> str:
    gids = list(worker.worker_gids)
    return ", ".join(map(str, gids[:8])) + (f", … ({len(gids)})" if len(gids) > 8 else "")


def part_of(worker: certificate_pb2.WorkerCertificate) -> str:
    """Returns the outcome of a worker: "recorded", or "never: busy other profiler"."""
    part = certificate_pb2.WorkerPart.Name(worker.part).replace("WORKER_PART_", "").replace("_", " ").lower()
    if worker.absence == certificate_pb2.WORKER_ABSENCE_NONE:
        return part
    absence = certificate_pb2.WorkerAbsence.Name(worker.absence).replace("WORKER_ABSENCE_", "")
    return f"{part}: {absence.replace('_', ' ').lower()}"


def lost_text(account: certificate_pb2.EventAccount) -> str:
    """Returns the number of lost events.

    >>> lost_text(certificate_pb2.EventAccount(lost=1200, lost_unknown=True))
    '1,200 and an unknown number'
    """
    return f"{account.lost:,}" + (" and an unknown number" if account.lost_unknown else "")


def capture_html(capture: messages.Capture, state: str) -> str:
    """Returns a capture's verdict, its workers and their losses, the worst first."""
    certificate = capture.certificate
    name = f" {html.escape(capture.spec.name)}" if capture.spec.name else ""
    title = f"<b>capture {html.escape(capture.capture_id)}</b>{name}: {html.escape(state)}, {capture.events:,} events"
    text = f"<p>{title}</p><p>{html.escape(certificate.verdict)}</p>"
    sentences = [*certificate.findings, *capture.warnings]
    if sentences:
        text += "<ul>" + "".join(f"<li>{html.escape(words)}</li>" for words in sentences[:ROWS_MAX]) + "</ul>"
    rows: list[list[object]] = [
        [worker.worker.instance_id, "framework files" if worker.framework else worker.worker.pid, _ranks(worker),
         part_of(worker), f"{worker.account.stored:,}", lost_text(worker.account), worker.clock.words, worker.detail]
        for worker in certificate.workers]
    return text + _table(("instance", "process", "ranks", "outcome", "events", "lost", "clock", "detail"), rows)


def why_html(report: insight_pb2.InsightReport) -> str:
    """Returns verdicts and refusals as a table, and what was judged."""
    rows: list[list[object]] = [["verdict", verdict.text, verdict.look] for verdict in report.verdicts]
    rows += [["refused", refusal.text, ""] for refusal in report.refusals]
    text = _table(("", "answer", "look"), rows) if rows else ""
    return text + "".join(f"<p>{html.escape(words)}</p>" for words in (report.text, *report.warnings) if words)
