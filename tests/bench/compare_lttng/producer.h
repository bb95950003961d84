// SPDX-License-Identifier: Apache-2.0
// One event on its way to either collector, and what each producer offers the common loop. C and
// C++, as LTTng's provider is C.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COMPARE_VALUES_MAX 5

struct compare_event {
  uint32_t shape; /* index into EventMix::shapes() */
  uint32_t nc_idx;
  uint64_t timestamp_ns;
  uint64_t nc_local_id;
  uint64_t tracking_id;
  uint64_t thread_id;
  int64_t worker_gid;
  /* One per key of the shape: a number, or what compare_text() returned for a text. */
  uint64_t values[COMPARE_VALUES_MAX];
};

/* Called once, with the number of cores and the worker_gid of the first; 0 when all is well. */
int compare_begin(uint32_t cores, uint32_t first_gid);
/* The value that stands for a text from here on. */
uint64_t compare_text(const char* text);
/* 1 when the event was taken by a running capture; LTTng does not say, so there it always is. */
int compare_emit(const struct compare_event* event);
void compare_end(void);

#ifdef __cplusplus
}
#endif
