/* SPDX-License-Identifier: Apache-2.0 */
/* Test-only entry points of the simulated runtime, outside the runtime's own names: how a workload
 * puts events into the rings, and how a test learns of misuse. All of them may be called from any
 * thread; emission takes only the lock of the core that it emits for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_NRT_EXPORT __attribute__((visibility("default")))
#define FAKE_NRT_VALUES_MAX 8

#ifdef __cplusplus
extern "C" {
#endif

/* How one value of an event's `data` object is written. */
typedef enum {
  FAKE_NRT_UNSIGNED,       /* 18446744073709551615 */
  FAKE_NRT_SIGNED,         /* -1 */
  FAKE_NRT_BOOL,           /* true */
  FAKE_NRT_HEX_STRING,     /* "0x7f3a00000000" */
  FAKE_NRT_DECIMAL_STRING, /* "4900392441224765051" */
  FAKE_NRT_STRING,         /* the text of fake_nrt_string(), escaped */
  FAKE_NRT_RAW_JSON,       /* the text of fake_nrt_raw_json(), as it is */
} fake_nrt_kind;

typedef struct {
  const char* key;
  fake_nrt_kind kind;
} fake_nrt_field;

/* One event type in one phase with one list of data keys; defined once, used for many events. */
typedef struct fake_nrt_form fake_nrt_form;

typedef struct {
  const fake_nrt_form* form;
  uint32_t nc_idx;
  bool has_nrta_seq_id;
  uint64_t thread_id;
  uint64_t tracking_id;
  uint64_t timestamp_ns;
  uint64_t nrta_seq_id;
  uint64_t values[FAKE_NRT_VALUES_MAX]; /* one per field of the form */
} fake_nrt_event;

/* Where an accepted event went: the how-manyth capture of the process, and its sequence number. */
typedef struct {
  uint64_t capture;
  uint64_t nc_local_id;
} fake_nrt_receipt;

/* Returns a form that lives as long as the process; event types that the runtime does not list are
 * accepted. NULL when there are too many fields or event types. */
FAKE_NRT_EXPORT const fake_nrt_form* fake_nrt_define(const char* event_type, const char* phase,
                                                     const fake_nrt_field* fields, size_t count);
/* Keep a text for the life of the process and return the value that stands for it. */
FAKE_NRT_EXPORT uint64_t fake_nrt_string(const char* utf8);
FAKE_NRT_EXPORT uint64_t fake_nrt_raw_json(const char* json);

/* The next tracking id of a core: (nc_idx << 50) | n. */
FAKE_NRT_EXPORT uint64_t fake_nrt_next_tracking_id(uint32_t nc_idx);
/* True when a capture runs and accepts the event; then *receipt (may be NULL) is filled in. */
FAKE_NRT_EXPORT bool fake_nrt_emit(const fake_nrt_event* event, fake_nrt_receipt* receipt);

/* Physical index of the first core of this process, by NEURON_RT_VISIBLE_CORES and the LNC size. */
FAKE_NRT_EXPORT uint32_t fake_nrt_first_physical_core(void);
/* Misuses of the interface seen so far; each was also one line "fake_nrt: misuse: …" on stderr. */
FAKE_NRT_EXPORT uint64_t fake_nrt_misuse_count(void);
/* Fetch buffers handed out and not yet given back. */
FAKE_NRT_EXPORT uint64_t fake_nrt_live_buffers(void);

#ifdef __cplusplus
}
#endif
