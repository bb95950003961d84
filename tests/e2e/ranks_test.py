# SPDX-License-Identifier: Apache-2.0
"""Ranks that workers' environments tell, with real taps and agents: what launchers and operators set, what children
inherit, and what stays as it was when the agent restarts or a worker dies."""

import suite
from fleet import wait_until
from fleet_case import FleetCase

QUIET = ("--communicator", "none", "--mix", "graph", "--executions-per-second", 20)


class Ranks(FleetCase):
    def start(self, *nodes, agent_options=()):
        """`nodes`: for each instance the (cores, environment) of its workers. Waits for all of them."""
        self.fleet.start_aggregator()
        for number, workers in enumerate(nodes, 1):
            instance = f"i-{number:04x}"
            self.fleet.start_agent(instance, *agent_options)
            for cores, environment in workers:
                self.fleet.start_worker(instance, "--cores", cores, *QUIET, env=environment, ready=False)
        for worker in self.fleet.workers:
            worker.wait_for_line("ready")
        self.fleet.wait_for_workers(len(self.fleet.workers))

    def listed(self):
        """What is said of each worker, in the order in which they were started."""
        by_pid = {int(worker["identity"]["pid"]): worker for worker in self.fleet.list_workers()}
        return [by_pid.get(worker.pid) for worker in self.fleet.workers]

    @staticmethod
    def gids(worker):
        return [int(core["rank_evidence"][0]["worker_gid"]) if core["rank_evidence"] else None
                for core in sorted(worker["cores"], key=lambda core: int(core.get("nc_idx", 0)))]

    def ranks(self):
        return [worker and self.gids(worker) for worker in self.listed()]

    def worlds(self):
        return {int(core["rank_evidence"][0]["world_size"]) for worker in self.listed() for core in worker["cores"]}

    def expect(self, ranks):
        wait_until(lambda: self.ranks() == ranks, f"ranks {ranks}, there are {self.ranks()}")

    def test_an_operators_rank_is_the_index_of_a_pod(self):
        self.start(*[[(4, {"RANK": pod, "WORLD_SIZE": "8", "PET_NODE_RANK": pod, "PET_NNODES": "2",
                           "PET_NPROC_PER_NODE": "4", "MASTER_ADDR": "job-master-0"})] for pod in ("0", "1")])
        self.expect([[0, 1, 2, 3], [4, 5, 6, 7]])
        self.assertEqual(self.worlds(), {8})
        self.assertEqual([worker.get("warnings", []) for worker in self.listed()], [[], []])

    def test_a_world_of_one_process_does_not_outweigh_slurms_tasks(self):
        self.start(*[[(2, {"SLURM_JOB_ID": "4712", "SLURM_PROCID": str(node), "SLURM_NTASKS": "3",
                           "SLURM_NNODES": "3", "SLURM_STEP_NUM_TASKS": "3", "PMI_RANK": "0", "PMI_SIZE": "1"})]
                     for node in range(3)])
        self.expect([[0, 1], [2, 3], [4, 5]])
        self.assertEqual(self.worlds(), {6})
        self.assertTrue(all(worker["cores"][0]["rank_evidence"][0]["guessed"] for worker in self.listed()))
        # That the ranks are guesses goes into the capture with them.
        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 10)
        capture = self.stop_capture(capture_id)
        streams = [stream for worker in capture["certificate"]["workers"] for stream in worker["streams"]]
        self.assertEqual({remark["kind"] for stream in streams for remark in stream["remarks"]},
                         {"REMARK_KIND_RANK_GUESSED"})

    def test_unrelated_jobs_that_nobody_named_do_not_contradict_each_other(self):
        torchrun = {"MASTER_ADDR": "127.0.0.1", "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "2", "GROUP_RANK": "0"}
        self.start([(1, {**torchrun, "MASTER_PORT": port, "RANK": rank, "LOCAL_RANK": rank})
                    for port in ("29500", "29501") for rank in "01"])
        for _ in range(2):  # each says in communicator calls that it has both ranks of its world
            self.fleet.start_worker("i-0001", "--cores", 2, "--mix", "graph", "--executions-per-second", 20)
        self.fleet.wait_for_workers(6)
        self.expect([[0], [1], [0], [1], [0, 1], [0, 1]])
        listed = self.fleet.cli_json("workers")
        self.assertEqual([job["conflicts"] for job in listed["jobs"] if job["conflicts"]], [])
        self.assertEqual({core["rank_evidence"][0]["contradicted"] for worker in listed["workers"]
                          for core in worker["cores"]}, {False})
        done = self.fleet.cli("capture", "--duration", "500ms", codes=(0,))
        self.assertIn("complete: every event", done.stdout)

    def test_different_world_sizes_are_a_conflict_with_all_claimants(self):
        self.start([(1, {"NEURONTRACE_JOB": "world", "RANK": rank, "WORLD_SIZE": size})
                    for rank, size in (("0", "2"), ("1", "4"))])
        self.expect([[0], [1]])
        first, second = (worker.pid for worker in self.fleet.workers)
        sentence = (f"the workers of job world report different world sizes: 2 (1 core: i-0001 pid {first} nc 0 (RANK=0 of "
                    f"2)), 4 (1 core: i-0001 pid {second} nc 0 (RANK=1 of 4))")
        self.assertIn(f"conflict: {sentence}", self.fleet.cli("workers", codes=(3,)).stdout)
        done = self.fleet.cli("capture", "--duration", "300ms", "--job", "world", codes=(3,))
        self.assertIn(sentence, done.stdout)
        self.assertIn("every event is stored, but 2 ranks are contradicted; different world sizes in 1 job", done.stdout)

    def test_lists_of_visible_cores_have_holes(self):
        self.start([(4, {"NEURON_RT_VISIBLE_CORES": cores}) for cores in ("0,2,4-5", "1,3,6-7")],
                   agent_options=("--worker-start-id", "0", "--workers-per-node", "8", "--worker-count", "8"))
        self.expect([[0, 2, 4, 5], [1, 3, 6, 7]])

    def test_ranks_by_order_do_not_move(self):
        options = ("--worker-start-id", "8")
        self.start([(1, {})] * 3, agent_options=options)
        wait_until(lambda: None not in sum(self.ranks(), []), "ranks by the order of start")
        before = self.ranks()
        self.assertEqual(sorted(sum(before, [])), [8, 9, 10])
        self.assertTrue(self.listed()[0]["cores"][0]["rank_evidence"][0]["guessed"])
        self.fleet.agents["i-0001"].kill()
        first = self.fleet.workers.pop(before.index([8]))
        first.kill()
        before.remove([8])
        self.fleet.start_agent("i-0001", *options)
        self.fleet.wait_for_workers(2)
        self.expect(before)
        # Another one takes the place that is free.
        self.fleet.start_worker("i-0001", "--cores", 1, *QUIET)
        self.fleet.wait_for_workers(3)
        self.expect([*before, [8]])


if __name__ == "__main__":
    suite.main()
