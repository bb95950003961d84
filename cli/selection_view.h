// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "neurontrace/v1/vocabulary.pb.h"

// Which workers a capture is about, by what was asked for. Pure functions.
namespace neurontrace::cli {

// "job llama, slurm=4711, ranks 0-7,64, instances i-a,i-b"; empty where it selects all there is.
std::string FormatSelection(const v1::CaptureSpec& spec);

// "llama slurm=4711": its jobs alone; empty where it names none.
std::string FormatJobs(const v1::CaptureSpec& spec);

// Whether the capture was asked for by this name of a job, given as --job takes it.
bool NamesJob(const v1::CaptureSpec& spec, const std::string& job);

// Whether it leaves no job out.
bool IsOfEveryJob(const v1::CaptureSpec& spec);

}  // namespace neurontrace::cli
