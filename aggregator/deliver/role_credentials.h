// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "aggregator/deliver/s3_credentials.h"
#include "aggregator/http/http_client.h"

// Credentials that AWS gives to a role for some hours: of a service account (EKS's IRSA), of a
// container (EKS Pod Identity, ECS), of an EC2 instance. Who asks is told by the environment, in
// the names that AWS's own tools know:
// https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html
namespace neurontrace {

// How a function asks, beside the environment.
struct RoleQuestion {
  const Environment& environment;
  const std::string& region;
  const std::string& authorities;  // HttpRequest
  HttpClient& http;
};

// Each gives nothing where the environment does not name such a role. What is named and cannot be
// had is an error that says what was asked: UNAVAILABLE for what another try may repair, else
// FAILED_PRECONDITION. No error has a token or a key in it.

// The role AWS_ROLE_ARN for the token in AWS_WEB_IDENTITY_TOKEN_FILE, from AWS's STS of the region
// or from AWS_ENDPOINT_URL_STS.
absl::StatusOr<std::optional<S3Credentials>> WebIdentityCredentials(const RoleQuestion& question);

// From AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI. As with AWS's tools, a full one has to
// be https or of this machine, ECS's or EKS's own address, so that a variable alone sends no token
// elsewhere.
absl::StatusOr<std::optional<S3Credentials>> ContainerCredentials(const RoleQuestion& question);

// Of the instance metadata service, version 2, at AWS_EC2_METADATA_SERVICE_ENDPOINT, unless
// AWS_EC2_METADATA_DISABLED is true. Nothing also where no such service gives a token within two
// seconds (a pod is one hop too far by default, and hosts can refuse some users), or the instance
// has no role.
absl::StatusOr<std::optional<S3Credentials>> InstanceCredentials(const RoleQuestion& question);

// What those services answer. Nothing for an answer without a key, its secret and its end.
std::optional<S3Credentials> ReadRoleJson(std::string_view text);
std::optional<S3Credentials> ReadWebIdentityAnswer(std::string_view xml);

// amazonaws.com, or that of AWS's regions in China.
std::string_view AwsDomain(std::string_view region);

}  // namespace neurontrace
