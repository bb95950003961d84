// SPDX-License-Identifier: Apache-2.0
// How the names of device profiles are read, of both eras; names without a core are told apart.
#include "lib/trace/device_profile.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

std::optional<DeviceProfile> Of(const std::string& session, const std::string& name) {
  const auto place = MakeArtifactPlace("i-0f20_pid_7_pod", session, name);
  EXPECT_TRUE(place.ok()) << name;
  return place.ok() ? DeviceProfileOf(*place) : std::nullopt;
}

TEST(DeviceProfileTest, ReadsTheNamesOfBothEras) {
  EXPECT_EQ(Of("1776672348756756905", "profile_nc_12_session_3.ntff"),
            (DeviceProfile{.name = "i-0f20_pid_7_pod_nc_12_session_3",
                           .instance_id = "i-0f20",
                           .process_id = 7,
                           .nc_id = 12,
                           .session_id = 3,
                           .path = "i-0f20_pid_7_pod/1776672348756756905/"
                                   "profile_nc_12_session_3.ntff"}));
  EXPECT_EQ(Of("", "0a1b_instid_2_vnc_5.ntff"),
            (DeviceProfile{.name = "i-0f20_pid_7_pod_0a1b_instid_2_vnc_5",
                           .instance_id = "i-0f20",
                           .process_id = 7,
                           .nc_id = 5,
                           .path = "i-0f20_pid_7_pod/0a1b_instid_2_vnc_5.ntff"}));
}

TEST(DeviceProfileTest, NamesWithoutCoreAreRejected) {
  for (const char* const name :
       {"profile_rank_3.ntff", "profile_nc_0_session_.ntff", "profile_nc_x_session_1.ntff",
        "profile_nc_0.ntff", "nc_0_session_1.ntff", "profile_nc_4294967296_session_1.ntff",
        "profile_nc_0_session_18446744073709551616.ntff", "a_instid_0_vnc_-1.ntff",
        "_instid_0_vnc_1.ntff", "a_vnc_1.ntff", "a_instid_0_vnc_1_.ntff",
        "profile_nc_0_session_1.neff", "ntrace.pb"}) {
    EXPECT_EQ(Of("", name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace neurontrace
