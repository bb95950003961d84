// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/deliver/s3_credentials.h"
#include "aggregator/http/http_client.h"

namespace neurontrace {

// Where objects are kept.
struct S3Service {
  std::string endpoint;  // https://HOST[:PORT]; empty: AWS's own of the region
  std::string region;    // empty: AWS_REGION, AWS_DEFAULT_REGION or us-east-1
  // PEM file of who may vouch for the service; empty: AWS_CA_BUNDLE or MachineAuthorities().
  std::string authorities;
};
// Empty for an endpoint that can be one. Without a scheme it is https; http has to be written out.
std::string CheckS3Endpoint(const std::string& endpoint);

struct S3Request {
  std::string method;
  std::string key;  // of the object; empty: the bucket
  // Sorted by name, as they are signed.
  std::map<std::string, std::string> query;
  std::vector<std::string> headers;  // "name: value"
  std::string_view body;
  size_t reply_bytes_max = 1u << 20;
};
struct S3Reply {
  int status = 0;  // HTTP
  std::string body;
  std::string etag;
  std::string mark;  // x-amz-meta-neurontrace-upload: who sent the object
  uint64_t content_bytes = 0;
};

// The header of an object's mark, for a request.
std::string S3MarkHeader(std::string_view mark);

// What to do about a reply, in words that follow it: "" where nothing is known.
std::string S3Remedy(int status, std::string_view code);

// Requests to one bucket, signed (AWS Signature Version 4). Certificates are checked. Credentials
// that end soon are found again. A request that got no answer, or one that is worth another try, is
// made up to three times, and all of it ends after kVolumeOperationNs. One thread at a time.
class S3Client {
 public:
  // Errors of S3CredentialsFinder.
  static absl::StatusOr<std::unique_ptr<S3Client>> Make(const S3Service& service,
                                                        const std::string& bucket,
                                                        const Environment& environment);

  // Any reply of the service; UNAVAILABLE where none came, FAILED_PRECONDITION where nobody vouches
  // for its certificate, OUT_OF_RANGE where it is too large.
  absl::StatusOr<S3Reply> Send(const S3Request& request);
  // As Send, and an error for a status other than 2xx: see Volume.
  absl::StatusOr<S3Reply> Do(const S3Request& request);

  const std::string& bucket() const { return bucket_; }

 private:
  S3Client(const S3Service& service, const std::string& bucket, const Environment& environment);
  absl::StatusOr<S3Reply> SendOnce(const S3Request& request, std::chrono::milliseconds time);
  void RenewCredentials();

  const std::string region_;
  const std::string url_;  // of the bucket
  const std::string bucket_;
  const std::string authorities_;
  S3CredentialsFinder find_credentials_;
  S3Credentials credentials_;
  std::chrono::steady_clock::time_point next_renewal_;
  HttpClient http_;
};

}  // namespace neurontrace
