# SPDX-License-Identifier: Apache-2.0
"""neurontrace: captures of a fleet's Neuron Runtime as DataFrames, and names of phases in training code.

    import neurontrace as nt

    client = nt.Client("agg.example:9400", ca="ca.pem")
    with client.capture(job="llama") as cap:
        train_some()
    print(cap.verdict, cap.why())
    cap.to_pandas("NtExecutions")

In the workers: `annotate`, `step` and `trigger`, which need neither gRPC nor a connection.
"""

from .client import Client
from .errors import (CallFailed, CaptureNotBegun, IncompleteCapture, IncompleteWarning, NeurontraceError,
                     SettingsError)
from .worker import Triggered, annotate, step, trigger

__all__ = ["CallFailed", "CaptureNotBegun", "Client", "IncompleteCapture", "IncompleteWarning", "NeurontraceError",
           "SettingsError", "Triggered", "annotate", "step", "trigger"]
