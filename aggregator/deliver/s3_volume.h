// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/deliver/s3_client.h"
#include "aggregator/deliver/volume.h"

namespace neurontrace {

// Objects below a prefix of a bucket. An object is there when all of it is; a large one is sent in
// parts, which an interrupted delivery's successor finds by its token and, where they are the same
// bytes, does not send again. Claims need a service that knows `If-None-Match: *`.
class S3Volume final : public Volume {
 public:
  static constexpr size_t kPartBytes = 16u << 20;
  static constexpr size_t kPartsMax = 10'000;  // the service's; beyond, RESOURCE_EXHAUSTED

  // `prefix`: without slashes at its ends; may be empty. `nonce`: of letters and digits, another
  // for each volume; in the marks of large objects.
  S3Volume(std::unique_ptr<S3Client> client, std::string prefix, std::string nonce);

  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& name,
                                               Resumption resumption) override;
  absl::Status CreateOnce(const std::string& name, std::string_view bytes) override;
  absl::StatusOr<std::string> Read(const std::string& name, size_t bytes_max) override;
  absl::StatusOr<uint64_t> Size(const std::string& name) override;
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory,
                                          size_t entries_max) override;
  absl::Status Remove(const std::string& name) override;
  void Abandon(const std::string& name, const std::string& token) override;
  void Sweep(const std::string&) override {}  // nothing temporary has a name
  std::string Where(const std::string& name) const override;

 private:
  std::string KeyOf(const std::string& name) const;

  const std::unique_ptr<S3Client> client_;
  const std::string prefix_;
  const std::string nonce_;
  uint64_t files_ = 0;
};

// What a token of an S3Volume tells: "UPLOAD MARK\nETAG SHA256\n…", a line a part.
struct S3Upload {
  struct Part {
    std::string etag;
    std::string sha256;  // in hexadecimal digits
  };
  std::string id;    // empty: none
  std::string mark;  // that the object has once it is whole, and only then
  std::vector<Part> parts;
};
std::string FormatUpload(const S3Upload& upload);
// The text is hostile; none for what is no token.
S3Upload ParseUpload(const std::string& token);

}  // namespace neurontrace
