// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_agent.h"

namespace neurontrace {

SimAgent::SimAgent(SimWorld& world, SimNetwork& network, SimHost& host, const Options& options)
    : runner_(world.runner),
      queue_(options.queue_bytes),
      sink_(options.wrap_sink ? options.wrap_sink(queue_) : nullptr),
      uploader_(queue_, network.MakeUploadConnector(host.link, host.info.agent_id), runner_,
                world.random, options.unacked_max),
      control_(host.info, network.MakeControlConnector(host.link), world.clock, runner_,
               world.random,
               {.on_welcome = [this] { uploader_.SetEnabled(true); },
                .on_lost = [this] { uploader_.SetEnabled(false); },
                .on_capture_over = [this](const CaptureId& id) { uploader_.ForgetCapture(id); }}),
      source_(world,
              {.agent_id = host.info.agent_id,
               .instance_id = host.info.instance_id,
               .boot_id = host.info.boot_id},
              host.workers, runner_, sink_ != nullptr ? *sink_ : queue_, control_) {
  control_.AddSource(source_);
  control_.Start();
}

SimAgent::~SimAgent() { runner_.Kill(); }

}  // namespace neurontrace
