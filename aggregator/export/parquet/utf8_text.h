// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "aggregator/export/json/json_text.h"
#include "base/clean_text.h"

namespace neurontrace {

// `text`, where it is UTF-8; otherwise `repaired`, which has U+FFFD for each byte that is none.
inline std::string_view Utf8Text(std::string_view text, std::string& repaired) {
  size_t good = 0;
  while (good < text.size() && static_cast<unsigned char>(text[good]) < 0x80) ++good;
  for (size_t bytes = 1; good < text.size() && bytes > 0; good += bytes) {
    bytes = Utf8SequenceBytes(text.substr(good));
  }
  if (good == text.size()) return text;
  repaired.clear();
  AppendRepairedUtf8(text, repaired);
  return repaired;
}

}  // namespace neurontrace
