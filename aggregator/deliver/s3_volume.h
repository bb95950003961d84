// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/deliver/s3_client.h"
#include "aggregator/deliver/volume.h"

namespace neurontrace {

// Objects below a prefix of a bucket. An object exists only when all of it does. A large one is
// sent in parts (multipart upload); a successor of an interrupted delivery finds them by the token
// and does not send equal parts again. Claims need a service that supports `If-None-Match: *`.
// Errors, threads and ownership are those of Volume.
class S3Volume final : public Volume {
 public:
  // A file of at most one part is sent with a single PUT. One part is in memory for each open file.
  static constexpr size_t kPartBytes = 16u << 20;
  // The service's limit; a larger file fails with RESOURCE_EXHAUSTED.
  static constexpr size_t kPartsMax = 10'000;

  // `prefix` has no slashes at its ends and may be empty. `nonce` has letters and digits, differs
  // for each volume, and becomes part of the marks of large objects.
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
  // Nothing to do: nothing temporary has a name.
  void Sweep(const std::string&) override {}
  std::string Where(const std::string& name) const override;

 private:
  std::string KeyOf(const std::string& name) const;

  const std::unique_ptr<S3Client> client_;
  const std::string prefix_;
  const std::string nonce_;
  uint64_t files_ = 0;
};

// The content of a token of an S3Volume: "UPLOAD MARK\nETAG SHA256\n…", one line for each part.
struct S3Upload {
  struct Part {
    std::string etag;
    // In hexadecimal digits; tells whether the same bytes are to be sent again.
    std::string sha256;
  };
  // Empty if there is no upload.
  std::string id;
  // The object has it once the upload is complete, and only then.
  std::string mark;
  std::vector<Part> parts;
};
std::string FormatUpload(const S3Upload& upload);
// Parses any text; an upload without an id if it is not a token.
S3Upload ParseUpload(const std::string& token);

}  // namespace neurontrace
