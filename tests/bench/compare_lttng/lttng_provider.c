/* SPDX-License-Identifier: Apache-2.0 */
/* The tracepoint provider: everything in it is made by LTTng's macros. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tests/bench/compare_lttng/lttng_provider.h"
