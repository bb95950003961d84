# SPDX-License-Identifier: Apache-2.0
"""Exceptions and warnings of this package. Each text names what went wrong and what to do."""

from __future__ import annotations


class NeurontraceError(Exception):
    """Base of all exceptions of this package."""


class SettingsError(NeurontraceError):
    """An option, variable or file of options is wrong; the text names it."""


class CallFailed(NeurontraceError):
    """The aggregator refused a call, or did not answer.

    `code` is the name of the gRPC status, such as ``"NOT_FOUND"`` or ``"UNAVAILABLE"``.
    """

    def __init__(self, text: str, code: str):
        super().__init__(text)
        self.code = code


class CaptureNotBegun(NeurontraceError):
    """A capture ended before it recorded anything; the text has the reasons of its workers."""


class IncompleteCapture(NeurontraceError):
    """`Capture.require_complete` found that events are missing; the text has the certificate's findings."""


class IncompleteWarning(UserWarning):
    """A result lacks something: workers that do not record, or data that an export does not contain."""
