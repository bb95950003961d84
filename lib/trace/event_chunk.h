// SPDX-License-Identifier: Apache-2.0
// The columns of one chunk: writing them, compressing them, reading them. Each header names its
// threads.
#pragma once

#include "lib/trace/columns_compression.h"  // IWYU pragma: export
#include "lib/trace/decoded_chunk.h"        // IWYU pragma: export
#include "lib/trace/event_chunk_builder.h"  // IWYU pragma: export
