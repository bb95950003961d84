// SPDX-License-Identifier: Apache-2.0
// Where the API server is, and which error a pod without one gets; tests/e2e/security asks one.
#include "aggregator/access/kubernetes_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "lib/base/temporary_directory.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class KubernetesApiTest : public ::testing::Test {
 protected:
  KubernetesApiTest() {
    std::ofstream(directory_ / "token") << "own\n";
    std::ofstream(directory_ / "ca.crt") << "-";
    variables_ = {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
                  {"KUBERNETES_SERVICE_PORT", "443"},
                  {"NEURONTRACE_KUBERNETES_CREDENTIALS", directory_.path()}};
  }

  absl::StatusOr<KubernetesPod> Find() {
    return KubernetesPod::Find([this](const char* name) { return variables_[name]; });
  }

  TemporaryDirectory directory_;
  std::map<std::string, std::string> variables_;
};

TEST_F(KubernetesApiTest, ReadsServerAddressFromPod) {
  EXPECT_EQ(Find()->url, "https://10.96.0.1:443");
  EXPECT_EQ(Find()->credentials, directory_.path());
  variables_["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  EXPECT_EQ(Find()->url, "https://[fd00::1]:443");
}

TEST_F(KubernetesApiTest, ReportsMissingSettings) {
  std::filesystem::remove(directory_ / "ca.crt");
  EXPECT_THAT(std::string(Find().status().message()), HasSubstr("automountServiceAccountToken"));
  std::ofstream(directory_ / "ca.crt") << "-";
  std::ofstream(directory_ / "token") << "two\nlines\n";
  EXPECT_THAT(std::string(Find().status().message()), HasSubstr("a token is a single line"));
  variables_.erase("KUBERNETES_SERVICE_PORT");
  EXPECT_THAT(std::string(Find().status().message()),
              HasSubstr("the aggregator must run in a pod"));
}

TEST_F(KubernetesApiTest, FailsWithoutReplyAndNamesNoToken) {
  variables_["KUBERNETES_SERVICE_HOST"] = "127.0.0.1";
  variables_["KUBERNETES_SERVICE_PORT"] = "1";  // nobody listens there
  const KubernetesApi api(*Find(), "neurontrace");
  const absl::Status status = api.Review("a-secret").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message().find("a-secret"), std::string::npos);
  std::filesystem::remove(directory_ / "token");
  EXPECT_TRUE(absl::IsUnavailable(api.Review("a-secret").status()));
}

}  // namespace
}  // namespace neurontrace
