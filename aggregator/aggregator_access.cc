// SPDX-License-Identifier: Apache-2.0
// Who reaches Aggregator, and the files that say so.
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <spdlog/spdlog.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/access/kubernetes_api.h"
#include "aggregator/aggregator.h"
#include "aggregator/deliver/s3_credentials.h"
#include "base/address.h"
#include "base/status.h"
#include "trace/limits.h"
#include "wire/grpc_channel.h"
#include "wire/grpc_set_up.h"

namespace neurontrace {
absl::Status Aggregator::OpenTokenReviews(const AggregatorConfig& config) {
  if (!config.kubernetes_tokens) {
    if (access_.rules()->has_service_accounts()) {
      SPDLOG_WARN("{} has service-account, and without --kubernetes-tokens nobody is one",
                  config.access);
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(KubernetesPod pod, KubernetesPod::Find(SystemEnvironment));
  const std::string& audience = config.kubernetes_token_audience;
  token_reviews_ = std::make_unique<TokenReviews>(
      audience,
      [api = KubernetesApi(std::move(pod), audience)](const std::string& token) {
        return api.Review(token);
      },
      system_clock_, *registry_);
  return absl::OkStatus();
}

absl::Status Aggregator::OpenAccess(const AggregatorConfig& config) {
  RETURN_IF_ERROR(access_.Load());
  const std::string audit_log =
      config.audit_log.empty() ? config.store + "/audit.log" : config.audit_log;
  ASSIGN_OR_RETURN(audit_, AuditLog::Open(audit_log, system_clock_));
  process_.DeclareCertificates();
  if (config.security.has_tls()) {
    RETURN_IF_ERROR(OpenTokenReviews(config));
    callers_ = std::make_unique<CallerFinder>(access_, system_clock_, token_reviews_.get());
  } else if (!IsLoopback(config.listen)) {
    SPDLOG_WARN("{} is reached from other machines, without encryption or authentication",
                config.listen);
  }
  return absl::OkStatus();
}

// In plain text everybody is everything: it is this machine's, or was asked for.
absl::StatusOr<Caller> Aggregator::CallerOf(const grpc::ServerContext& context) const {
  if (callers_ == nullptr) return Caller{.name = "anybody", .role = Role::kAdmin};
  return callers_->Find(*context.auth_context(), context.client_metadata());
}

AdmitCall Aggregator::AdmitAgents() {
  return [this](const std::string& peer) { return call_limits_.AdmitAgent(peer); };
}

void Aggregator::NoteOrder(const AuditEntry& entry) {
  if (entry.action == "capture.start") capture_metrics_.CountAnswer(entry.outcome);
  if (absl::IsPermissionDenied(entry.outcome))
    RefusedCalls(*registry_, "not_permitted").Increment();
  audit_->Write(entry);
}

void Aggregator::LookAtFiles(bool anyway) {
  process_.LookAtFiles(anyway);
  access_.Look(anyway);
  if (access_.has_file()) metrics_.SetAccessFileGood(access_.is_good());
  if (anyway) audit_->Reopen();
  triggers_->LookAtFile(anyway);
}

// One for each slot; without TLS there is nobody to judge.
std::vector<std::shared_ptr<grpc::AuthMetadataProcessor>> Aggregator::MakeGuards(
    const std::shared_ptr<PeerSlots>& slots) {
  std::vector<std::shared_ptr<grpc::AuthMetadataProcessor>> guards;
  if (callers_ == nullptr) return guards;
  const auto guard = std::make_shared<CallGuard>(
      CallGuard::Deps{*callers_, *audit_, clock_, *registry_, call_limits_});
  for (size_t slot = 0; slot < slots->size(); ++slot) {
    guards.push_back(
        std::make_shared<SlotGuard>(guard, [slots, slot] { return slots->Describe(slot); }));
  }
  return guards;
}

// On the port's thread. Of these, too, only so many a second are written down.
void Aggregator::OnHandshakeFailed(const std::string& peer, const std::string& reason) {
  const uint64_t second = clock_.MonotonicNs() / 1'000'000'000;
  if (second != handshakes_second_) handshakes_written_ = 0;
  handshakes_second_ = second;
  if (++handshakes_written_ > limits::kRefusalsWrittenPerSecond) return;
  audit_->Write({.action = "connection",
                 .from = peer,
                 .outcome = absl::UnauthenticatedError("the TLS handshake failed: " + reason)});
}

absl::Status Aggregator::StartServer(const AggregatorConfig& config) {
  const auto slots = std::make_shared<PeerSlots>(callers_ == nullptr ? 1 : limits::kPeerSlots);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  ConfigureServer(builder);
  ASSIGN_OR_RETURN(
      server_port_,
      ServerPort::Listen({.address = config.listen,
                          .descriptors_max = ServerPort::DescriptorsForConnections(),
                          .refused =
                              [this](ServerPort::Refusal why) {
                                (why == ServerPort::Refusal::kAddress
                                     ? metrics_.connections_refused_address
                                     : metrics_.connections_refused_descriptors)
                                    .Increment();
                              },
                          .crowded =
                              [](const std::string& address) {
                                SPDLOG_WARN(
                                    "{} has as many connections as one address may have here: "
                                    "further ones are closed",
                                    address);
                              },
                          .handshake_failed = std::bind_front(&Aggregator::OnHandshakeFailed, this),
                          .slots = slots}));
  SetHandshakeListener([this](std::string_view reason) {
    metrics_.handshakes_failed.Increment();
    server_port_->ReportHandshakeFailure(std::string(reason));
  });
  // With a file of access tokens may come at any time.
  server_port_->AddTo(
      builder, MakeServerCredentials(config.security, MakeGuards(slots), !config.access.empty()));
  grpc::ResourceQuota quota("aggregator");
  builder.SetResourceQuota(
      quota.Resize(limits::kGrpcBytesMax).SetMaxThreads(limits::kGrpcThreadsMax));
  builder.RegisterService(&gateway_);
  builder.RegisterService(&artifact_service_);
  builder.RegisterService(&clocks_->gateway());
  builder.RegisterService(&operator_service_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return Internal("gRPC does not start; the log says why");
  server_port_->Start();
  address_ =
      fmt::format("{}:{}", config.listen.substr(0, config.listen.rfind(':')), server_port_->port());
  server_->GetHealthCheckService()->SetServingStatus(true);
  return absl::OkStatus();
}

}  // namespace neurontrace
