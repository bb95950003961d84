// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace neurontrace {

// How a connection is protected, and how its two ends authenticate each other: TLS with
// certificates of both sides, or plain text, which is for one machine. docs/operator/security.md
// explains the whole. A plain value.
struct ChannelSecurity {
  // PEM files. gRPC examines them every few seconds, so that rotated ones need no restart: existing
  // connections stay, and new ones use the current contents. All empty: plain text.
  std::string ca;    // trusted authorities
  std::string cert;  // the own certificate first, then the chain to the CA
  std::string key;   // of the certificate
  // Of a client:
  std::string server_name;  // in the server's certificate; empty: the host of its address
  std::string token_file;   // a bearer token, sent with every call; read for each
  // Allows plain text with other machines too.
  bool insecure = false;

  bool has_tls() const { return !ca.empty() || !cert.empty() || !key.empty(); }
};

enum class ChannelSide { kClient, kServer };

// Adds --tls-ca, --tls-cert, --tls-key and --insecure; for a client also --tls-server-name and
// --token-file. `security` must outlive the parsing.
void AddSecurityOptions(CLI::App& app, ChannelSecurity& security, ChannelSide side);

// Checks whether `address` may be connected to, or listened at, with this security. Reads the
// files. Fails with FAILED_PRECONDITION and a way out if other machines could read the traffic, an
// option is missing, a file is unusable, the key belongs to another certificate, or a certificate
// is not valid now.
absl::Status CheckSecurity(const ChannelSecurity& security, const std::string& address,
                           ChannelSide side);

// Returns a sentence for each private key or token file that every user of this machine may read or
// write, with the command that restricts it. Only a warning, and never about a group: Kubernetes
// mounts secrets with mode 0644 unless told otherwise, into containers that have one user.
std::vector<std::string> DescribeOpenSecrets(const ChannelSecurity& security);

// Make credentials from a security that CheckSecurity has accepted. Each has a thread of gRPC that
// examines the files.
std::shared_ptr<grpc::ChannelCredentials> MakeClientCredentials(const ChannelSecurity& security);
// Returns credentials for each guard, which judges every call of a connection with TLS. With
// `takes_tokens` clients without a certificate reach the guard; otherwise the handshake refuses
// them. All share one watch of the files. Without TLS there is a single credential, and guards are
// not called.
std::vector<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ChannelSecurity& security,
    std::span<const std::shared_ptr<grpc::AuthMetadataProcessor>> guards, bool takes_tokens);

}  // namespace neurontrace
