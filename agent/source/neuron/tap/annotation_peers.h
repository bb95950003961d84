// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "agent/source/neuron/tap/tap_session.h"

namespace neurontrace {

// Takes the connections of libneurontrace_annotate.so, which come to the taps' socket. Implemented
// by AnnotationSource; called by TapSource, which owns the connections and limits how many a user
// has. On the agent's sequence.
class AnnotationPeers {
 public:
  virtual ~AnnotationPeers() = default;
  // A process has connected, with a greeting that annotates. Any status but OK ends the connection,
  // without OnAnnotatorGone. The session is valid until OnAnnotatorGone.
  virtual absl::Status OnAnnotator(TapSession& session, TapGreeting greeting) = 0;
  virtual void OnAnnotatorGone(TapSession& session) = 0;
};

}  // namespace neurontrace
