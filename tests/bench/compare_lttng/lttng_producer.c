/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison's events into LTTng's user space tracer. */
#include <stdlib.h>
#include <string.h>

#include "tests/bench/compare_lttng/lttng_provider.h"

typedef void (*tracepoint_call)(const struct compare_event* event);

#define DEFINE_CALL(name, class)                                \
  static void trace_##name(const struct compare_event* event) { \
    lttng_ust_tracepoint(neuron, name, event);                  \
  }
COMPARE_TRACEPOINTS(DEFINE_CALL)

/* By the number that the mix gives a shape; 28 to 35 are memory events, which the default filter
 * leaves out. */
#define CALL(name, class) trace_##name,
static const tracepoint_call calls[] = {COMPARE_TRACEPOINTS(CALL)};
enum { CALLS = sizeof(calls) / sizeof(calls[0]), MEMORY_SHAPES = 8, SYNC_SHAPE = 36 };

int compare_begin(uint32_t cores, uint32_t first_gid) {
  (void)cores;
  (void)first_gid;
  return CALLS == SYNC_SHAPE - MEMORY_SHAPES + 1 ? 0 : 1;
}

uint64_t compare_text(const char* text) {
  /* As many as a pool has events; they live as long as the process. */
  return (uint64_t)(uintptr_t)strdup(text);
}

int compare_emit(const struct compare_event* event) {
  const uint32_t shape = event->shape == SYNC_SHAPE ? CALLS - 1 : event->shape;
  if (shape >= CALLS) abort();
  calls[shape](event);
  return 1;
}

void compare_end(void) {}
