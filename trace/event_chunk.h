// SPDX-License-Identifier: Apache-2.0
// The columns of one chunk: writing them, compressing them, reading them.
#pragma once

#include "trace/columns_compression.h"  // IWYU pragma: export
#include "trace/decoded_chunk.h"        // IWYU pragma: export
#include "trace/event_chunk_builder.h"  // IWYU pragma: export
