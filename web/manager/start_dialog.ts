// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from '../api/api_client';
import {describeError} from '../api/api_error';
import {CapturePreview} from '../api/api_types';
import {parseRanges} from '../model/number_ranges';
import {parseRetention} from '../model/retention';
import {formatBytes, formatCount, formatDuration, parseDuration} from '../model/text_format';
import {parseCount} from '../model/time_base';
import {element, notice, replaceChildren} from '../widgets/dom';
import {Modal} from '../widgets/modal';

// Starts a capture, and before that shows what it would cost.
export class StartDialog {
  private readonly modal = new Modal('Start a capture');
  private readonly name = field('Name', 'start-name', 'optional');
  private readonly job = field('Job', 'start-job', 'any', 'start-jobs');
  private readonly duration = field('Duration', 'start-duration', '30s; empty: until it is stopped');
  private readonly ranks = field('Ranks', 'start-ranks', 'all; or 0-7,13');
  private readonly keep = field('Keep for', 'start-keep', '30d after its end; empty: forever');
  private readonly framework = element('input', {type: 'checkbox', id: 'start-framework', checked: true});
  private readonly preview = element('div', {class: 'preview', role: 'status'});

  constructor(private readonly api: ApiClient, private readonly done: {started(id: string): void}) {
    this.duration.input.value = '30s';
    const jobs = element('datalist', {id: 'start-jobs'});
    this.modal.body.append(
        this.name.element, this.job.element, this.duration.element, this.ranks.element, this.keep.element, jobs,
        this.frameworkLine(), this.preview);
    this.modal.addButton('Cancel', () => this.modal.close());
    this.modal.addButton('Preview', () => void this.run(true));
    this.modal.addButton('Start', () => void this.run(false), 'primary');
    void this.fillJobs(jobs);
  }

  private frameworkLine(): HTMLElement {
    const text = 'Include trace files of the framework';
    return element('label', {class: 'check', for: 'start-framework'}, this.framework, text);
  }

  open(): void {
      this.modal.open();
      this.name.input.focus();
  }

  private async fillJobs(list: HTMLElement): Promise<void> {
      try {
        const {workers} = await this.api.operator('/workers') as {workers?: {job?: string}[]};
        new Set((workers ?? []).map(worker => worker.job ?? '').filter(job => job))
            .forEach(job => list.appendChild(element('option', {value: job})));
      } catch {
        // The list is a convenience; the job can be typed.
      }
  }

  // The members that are set; the aggregator knows the defaults of the rest. Returns what is wrong instead.
  private spec(): Record<string, unknown> | string {
      const spec: Record<string, unknown> = {include_neuron: true, include_framework: this.framework.checked};
      const name = this.name.input.value.trim(), job = this.job.input.value.trim(),
            duration = this.duration.input.value.trim();
      if (name) spec.name = name;
      if (job) spec.job = job;
      if (duration) {
        const ns = parseDuration(duration);
        if (ns === null || ns <= 0) return `${duration} is no duration: write 30s, 5 min or 500ms`;
        spec.duration_ns = String(ns);
      }
      if (this.keep.input.value.trim()) {
        const kept = parseRetention(this.keep.input.value);
        if ('problem' in kept) return kept.problem;
        spec.retention_ns = kept.ns;
      }
      const ranks = this.ranks.input.value.trim();
      if (ranks) {
        if (!/^\d+(-\d+)?(\s*,\s*\d+(-\d+)?)*$/.test(ranks) || parseRanges(ranks).length === 0)
          return `${ranks} is no list of ranks: write 0-7,13`;
        spec.worker_gids =
            ranks.split(',').map(part => part.trim().split('-')).map(([first, last]) => ({first, last: last ?? first}));
      }
      return spec;
  }

  private async run(dryRun: boolean): Promise<void> {
      const spec = this.spec();
      if (typeof spec === 'string') return replaceChildren(this.preview, notice('error', spec));
      replaceChildren(this.preview, notice('loading', dryRun ? 'Measuring what the workers produce now' : 'Starting'));
      try {
        const capture = await this.api.startCapture(spec, dryRun);
        if (dryRun)
          return this.showPreview(capture.preview ?? {}, capture.workers?.length ?? 0, capture.warnings ?? []);
        this.modal.close();
        this.done.started(capture.captureId ?? '');
      } catch (error) {
        const {message, hint} = describeError(error);
        replaceChildren(
            this.preview,
            notice('error', `${dryRun ? 'There is no preview' : 'The capture was not started'}: ${message}`, hint));
      }
  }

  private showPreview(preview: CapturePreview, workers: number, warnings: string[]): void {
      const isLimited = parseCount(preview.durationNs) > 0, quota = preview.quotaLeftBytes ?? '0';
      const entries: [string, string][] = [
        ['Workers', formatCount(workers)],
        [
          'Events',
          `${formatCount(preview.eventsPerSecond ?? 0)} a second` +
              (isLimited
                   ? `, ${formatCount(parseCount(preview.events))} in ${formatDuration(parseCount(preview.durationNs))}`
                   : '')
        ],
        [
          'Bytes',
          `${formatBytes(preview.bytesPerSecond ?? 0)} a second` +
              (isLimited ? `, ${formatBytes(parseCount(preview.bytes))} in all` : '')
        ],
        ['Free in the store', formatBytes(parseCount(preview.storeFreeBytes))],
        ['Left of the quota', quota === '18446744073709551615' ? 'no quota' : formatBytes(parseCount(quota))],
        [
          'Largest instance',
          preview.mostInstanceId ? `${preview.mostInstanceId}, ${formatBytes(preview.mostBytesPerSecond ?? 0)} a second`
                                 : ''
        ],
      ];
      const list = element('dl');
      for (const [key, value] of entries)
        if (value) list.append(element('dt', {}, key), element('dd', {}, value));
      replaceChildren(
          this.preview, list, ...(preview.objections ?? []).map(text => notice('error', text)),
          ...warnings.map(text => element('p', {class: 'faint'}, text)));
  }
  }

  function field(label: string, id: string, hint: string, list?: string):
      {element: HTMLElement, input: HTMLInputElement} {
    const input =
        element('input', {type: 'text', id, placeholder: hint, autocomplete: 'off', spellcheck: 'false', list});
  return {element: element('label', {class: 'field', for: id}, element('span', {}, label), input), input};
}
