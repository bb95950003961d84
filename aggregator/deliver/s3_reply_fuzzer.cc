// SPDX-License-Identifier: Apache-2.0
// Any text as a reply of an S3 service and as a token of an upload: no crash, and a token that is
// accepted is the same when it is written and read again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "aggregator/deliver/s3_volume.h"
#include "aggregator/deliver/s3_xml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const std::string_view contents : neurontrace::XmlElements(text, "Contents")) {
    neurontrace::ParseS3Time(neurontrace::XmlText(contents, "LastModified"));
  }
  const std::string token = neurontrace::FormatUpload(neurontrace::ParseUpload(text));
  if (token != neurontrace::FormatUpload(neurontrace::ParseUpload(token))) std::abort();
  return 0;
}
