// SPDX-License-Identifier: Apache-2.0
// Who is let pass, and the outcome of those who are not.
#include "aggregator/access/auth_interceptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "aggregator/access/call_limits.h"
#include "lib/base/small_file.h"
#include "lib/base/temporary_directory.h"
#include "lib/wire/pem_files.h"
#include "lib/wire/test_certificates.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kGuardSecondNs = 1'000'000'000;
constexpr char kStatusCall[] = "/neurontrace.v1.OperatorService/GetStatus";
constexpr char kControlCall[] = "/neurontrace.v1.AgentGateway/Control";

// The certificate of a connection.
class FakeAuthContext final : public grpc::AuthContext {
 public:
  FakeAuthContext(const std::string& uri, const std::string& name, const std::string& pem)
      : properties_{{"peer_uri", uri}, {"x509_common_name", name}, {"x509_pem_cert", pem}} {}

  bool IsPeerAuthenticated() const override { return true; }
  std::vector<grpc::string_ref> GetPeerIdentity() const override { return {}; }
  std::string GetPeerIdentityPropertyName() const override { return ""; }
  std::vector<grpc::string_ref> FindPropertyValues(const std::string& name) const override {
    const auto found = properties_.find(name);
    if (found == properties_.end()) return {};
    return {found->second};
  }
  grpc::AuthPropertyIterator begin() const override { return Nothing(); }
  grpc::AuthPropertyIterator end() const override { return Nothing(); }
  void AddProperty(const std::string&, const grpc::string_ref&) override {
    ADD_FAILURE() << "gRPC shares it among the calls of a connection";
  }
  bool SetPeerIdentityPropertyName(const std::string&) override { return false; }

 private:
  struct Nothing : grpc::AuthPropertyIterator {};
  const std::map<std::string, std::string> properties_;
};

class AuthInterceptorTest : public ::testing::Test {
 protected:
  AuthInterceptorTest() {
    EXPECT_TRUE(end_.ok()) << end_.status();
    audit_ = AuditLog::Open(directory_ / "audit.log", clock_).value();
    guard_ = std::make_unique<AuthInterceptor>(
        AuthInterceptor::Deps{finder_, *audit_, clock_, registry_, limits_});
  }

  grpc::Status Call(FakeAuthContext& who, const std::string& path) {
    const grpc::AuthMetadataProcessor::InputMetadata metadata = {{":path", path}};
    return guard_->Process(metadata, who, [] { return std::string("10.0.0.9"); });
  }
  int CallsUntilRefused(FakeAuthContext& who, const std::string& path) {
    int calls = 0;
    while (calls < 1'000 && Call(who, path).ok()) ++calls;
    return calls;
  }
  double Refused(const char* reason) { return RefusedCalls(registry_, reason).Value(); }
  std::string Audited() const { return ReadSmallFile(directory_ / "audit.log", 1 << 20).value(); }

  std::string NewPem() {
    certificates_.Issue("caller", {});
    return ReadSmallFile(certificates_.cert("caller"), 1 << 20).value();
  }

  TemporaryDirectory directory_;
  TestCertificates certificates_;
  const std::string pem_ = NewPem();
  const absl::StatusOr<int64_t> end_ = CertificateEnd(certificates_.cert("caller"));
  FakeClock clock_;
  prometheus::Registry registry_;
  AccessPolicyStore book_{"", clock_};
  Authenticator finder_{book_, clock_};
  CallLimits limits_{clock_, registry_, 10};
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<AuthInterceptor> guard_;
  FakeAuthContext alice_{"neurontrace:operator", "alice", pem_};
  FakeAuthContext bob_{"neurontrace:viewer", "bob", pem_};
  FakeAuthContext agent_{"neurontrace:agent", "agent", pem_};
  FakeAuthContext mallory_{"x", "mallory", pem_};
};

TEST_F(AuthInterceptorTest, RefusesUnauthenticatedAndUnauthorizedCallers) {
  EXPECT_TRUE(Call(alice_, kStatusCall).ok());
  EXPECT_EQ(Call(mallory_, kStatusCall).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Call(bob_, "/neurontrace.v1.OperatorService/PurgeEverything").error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Refused("not_permitted"), 2.0);
  EXPECT_THAT(Audited(), HasSubstr("\"caller\":\"bob\",\"role\":\"viewer\",\"from\":\"10.0.0.9\""));
}

// The handler knows which capture it is about, and refuses it.
TEST_F(AuthInterceptorTest, CallsThatTheirHandlersCheckPassForPeopleAndNotForAgents) {
  for (const char* const method : {"StartCapture", "StopCapture", "DeleteCapture", "UpdateCapture",
                                   "FireTrigger", "GetArtifact"}) {
    const std::string call = std::string("/neurontrace.v1.OperatorService/") + method;
    EXPECT_TRUE(IsCheckedByItsHandler(call));
    EXPECT_TRUE(Call(bob_, call).ok()) << call;
    EXPECT_EQ(Call(agent_, call).error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(Call(mallory_, call).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  }
  EXPECT_FALSE(IsCheckedByItsHandler(kStatusCall));
  EXPECT_FALSE(IsCheckedByItsHandler(kControlCall));
  EXPECT_FALSE(IsCheckedByItsHandler("/neurontrace.v1.AgentGateway/StopCapture"));
}

TEST_F(AuthInterceptorTest, RefusesExpiredCertificate) {
  const uint64_t end_ns = static_cast<uint64_t>(*end_) * kGuardSecondNs;
  clock_.AdvanceNs(end_ns - clock_.RealtimeNs());
  EXPECT_TRUE(Call(alice_, kStatusCall).ok());
  clock_.AdvanceNs(kGuardSecondNs);
  for (FakeAuthContext* const who : {&alice_, &agent_}) {
    const grpc::Status over = Call(*who, who == &alice_ ? kStatusCall : kControlCall);
    EXPECT_EQ(over.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_THAT(over.error_message(), HasSubstr("this connection expired at 2"));
  }
  FakeAuthContext unreadable("neurontrace:operator", "alice", "no certificate");
  EXPECT_EQ(Call(unreadable, kStatusCall).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Refused("unauthenticated"), 3.0);
}

TEST_F(AuthInterceptorTest, RateLimitsCallers) {
  EXPECT_EQ(CallsUntilRefused(alice_, kStatusCall), 20);
  const grpc::Status refused = Call(alice_, kStatusCall);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("try again in"));
  EXPECT_TRUE(Call(bob_, kStatusCall).ok()) << "other callers are not limited";
  EXPECT_EQ(Refused("too_many"), 2.0);
  EXPECT_EQ(Refused("unauthenticated"), 0.0);
  EXPECT_THAT(Audited(), HasSubstr("\"outcome\":\"refused\",\"reason\":\"alice exceeds"));
  clock_.AdvanceNs(kGuardSecondNs);
  EXPECT_EQ(CallsUntilRefused(alice_, kStatusCall), 10);
}

TEST_F(AuthInterceptorTest, CountsAgentsOnlyForForbiddenCalls) {
  EXPECT_EQ(CallsUntilRefused(agent_, kControlCall), 1'000);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Call(agent_, kStatusCall).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  }
  EXPECT_EQ(Call(agent_, kStatusCall).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Call(agent_, kControlCall).ok());
}

TEST_F(AuthInterceptorTest, LimitsLoggedRefusalsPerSecond) {
  for (int i = 0; i < 100; ++i) Call(mallory_, kStatusCall);
  const std::string text = Audited();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), limits::kRefusalsWrittenPerSecond);
  EXPECT_EQ(Refused("not_permitted"), 100.0);
}

}  // namespace
}  // namespace neurontrace
