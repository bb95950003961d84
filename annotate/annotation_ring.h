// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "annotate/annotation_format.h"

namespace neurontrace::annotate {

// The texts of a record, which are copied behind it. Null only with 0 bytes.
struct RecordTexts {
  const char* domain = nullptr;
  const char* category = nullptr;
  const char* message = nullptr;
};

// Writes the record and its texts, whose sizes are in the record, to the ring whose header `ring`
// is. Sets the record's length. Drops and counts a record that finds no room, or whose reader's
// position is not valid. Returns whether it was written. Never waits. Called by one thread at a
// time for each ring.
bool WriteAnnotation(AnnotationRingHeader& ring, AnnotationRecord& record,
                     const RecordTexts& texts);

}  // namespace neurontrace::annotate
