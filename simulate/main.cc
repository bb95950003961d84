// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate_command.h"

int main(int argc, char** argv) { return neurontrace::RunSimulateCommand(argc, argv); }
