// SPDX-License-Identifier: Apache-2.0
// Any text as a reply of an S3 service, as a token of an upload, and as what gives a role its
// credentials: no crash, a token that is accepted is the same when it is written and read again,
// and credentials are whole and end no header.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "aggregator/deliver/role_credentials.h"
#include "aggregator/deliver/s3_volume.h"
#include "aggregator/deliver/s3_xml.h"

namespace {

void Check(const std::optional<neurontrace::S3Credentials>& credentials) {
  if (!credentials) return;
  for (const std::string* text :
       {&credentials->key_id, &credentials->secret, &credentials->session_token}) {
    if (text->empty() || text->find_first_of("\r\n") != std::string::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const std::string_view contents : neurontrace::XmlElements(text, "Contents")) {
    neurontrace::ParseS3Time(neurontrace::XmlText(contents, "LastModified"));
  }
  Check(neurontrace::ReadRoleJson(text));
  Check(neurontrace::ReadWebIdentityAnswer(text));
  const std::string token = neurontrace::FormatUpload(neurontrace::ParseUpload(text));
  if (token != neurontrace::FormatUpload(neurontrace::ParseUpload(token))) std::abort();
  return 0;
}
