// SPDX-License-Identifier: Apache-2.0
import {ApiClient, Query} from '../api/api_client';
import {CaptureLayout} from '../model/capture_layout';
import {exportCommand} from '../model/command_text';
import {formatDuration, parseDuration} from '../model/text_format';
import {TimeBase} from '../model/time_base';
import {copyLine} from '../widgets/copy_line';
import {button, element} from '../widgets/dom';

import {DownloadList} from './download_list';

// The formats of `neurontrace export`, with what a person does with them.
const kFormats: [string, string, string][] = [
  ['perfetto', 'Perfetto trace', 'opens at ui.perfetto.dev'],
  ['json', 'JSON profile', 'in the vendor’s schema'],
  ['chrome-json', 'Chrome trace', 'for chrome://tracing and scripts'],
  ['parquet', 'Parquet tables', 'for SQL; an archive of one directory'],
  ['xspace', 'XSpace', 'for TensorBoard; an archive of one directory'],
  ['events', 'Events', 'as they were recorded, one JSON object a line'],
  ['summary-text', 'Summary', 'figures as text'],
  ['summary-json', 'Summary as JSON', 'figures for programs'],
];

const kRanges = /^\s*\d+(-\d+)?(\s*,\s*\d+(-\d+)?)*\s*$/;

// Saves a capture, or a part of it, in any format of the command line, and shows the command that writes the same.
export class ExportSection {
  readonly element: HTMLElement;
  private readonly format = element(
      'select', {id: 'export-format'},
      ...kFormats.map(([name, title, use]) => element('option', {value: name}, `${title} (${use})`)));
  private readonly from = input('export-from', 'the beginning, or 1.5s after it');
  private readonly to = input('export-to', 'the end, or 2s after the beginning');
  private readonly gids = input('export-gids', 'all, or 8-15,20');
  private readonly streams = input('export-streams', 'all, or 4-11,20');
  private readonly problem = element('p', {class: 'bad', role: 'alert', hidden: true});
  private readonly command = copyLine('');
  private readonly save: HTMLButtonElement;

  constructor(
      private readonly api: ApiClient, private readonly captureId: string, private readonly base: TimeBase|null,
      private readonly layout: CaptureLayout|null, private readonly downloads: DownloadList) {
    this.save = button('Download', () => this.download(), {class: 'primary', id: 'export-save'});
    if (layout) this.to.placeholder = `the end, ${formatDuration(layout.end - layout.begin)} after the beginning`;
    this.element = element(
        'section', {class: 'exports', 'aria-labelledby': 'exports-title'},
        element('h2', {id: 'exports-title'}, 'Export'),
        element(
            'form', {
              class: 'export-form',
              onsubmit: (event: Event) => {
                event.preventDefault();
                this.download();
              }
            },
            field('Format', this.format), field('From', this.from), field('To', this.to), field('Ranks', this.gids),
            field('Streams', this.streams), this.save),
        this.problem, element('p', {class: 'faint'}, 'On the command line, which continues an interrupted export:'),
        this.command.element, downloads.element);
    for (const control of layout ? [] : [this.from, this.to]) {
      control.disabled = true;
      control.placeholder = 'The capture’s times are not known';
    }
    for (const control of [this.format, this.from, this.to, this.gids, this.streams])
      control.addEventListener('input', () => this.update());
    this.update();
  }

  private update(): void {
    const query = this.query();
    this.problem.hidden = typeof query !== 'string';
    this.problem.textContent = typeof query === 'string' ? query : '';
    this.save.disabled = typeof query === 'string';
    if (typeof query === 'string') return;
    const {from, to, gids, streams} = query;
    this.command.show(
        exportCommand({
          captureId: this.captureId,
          format: this.format.value,
          fromNs: String(from ?? ''),
          toNs: String(to ?? ''),
          gids: String(gids ?? ''),
          streams: ''
        }),
        streams ? 'The command line selects by rank; it has no option for streams.' : '');
  }

  private download(): void {
    const query = this.query();
    if (typeof query === 'string') return;
    const title = kFormats.find(([name]) => name === this.format.value)?.[1] ?? this.format.value;
    this.downloads.start(title, name => this.api.exportAddress(this.captureId, {...query, download: name}));
  }

  // The parameters of the export, or what is wrong with the form.
  private query(): Query|string {
    const from = this.moment(this.from.value), to = this.moment(this.to.value);
    if (from === null || to === null)
      return 'From and to: write a time after the beginning such as 1.5s or 200ms, or leave them empty.';
    if (from !== '' && to !== '' && BigInt(to) <= BigInt(from)) return 'To: write a later time than in From.';
    for (const [label, control] of [['Ranks', this.gids], ['Streams', this.streams]] as [string, HTMLInputElement][]) {
      if (control.value.trim() && !kRanges.test(control.value))
        return `${label}: write numbers and ranges between commas, such as 8-15,20.`;
    }
    const plain = (control: HTMLInputElement): string|undefined => control.value.replace(/\s+/g, '') || undefined;
    return {
      format: this.format.value,
      from: from || undefined,
      to: to || undefined,
      gids: plain(this.gids),
      streams: plain(this.streams)
    };
  }

  // A time after the capture's beginning as Unix nanoseconds; empty if there is none, null if it is no time.
  private moment(text: string): string|null {
    if (!text.trim()) return '';
    const after = parseDuration(text);
    return after === null || !this.base || !this.layout ? null : this.base.absolute(this.layout.begin + after);
  }
}

function input(id: string, hint: string): HTMLInputElement {
  return element('input', {type: 'text', id, placeholder: hint, autocomplete: 'off', spellcheck: 'false'});
}

function field(label: string, control: HTMLElement): HTMLElement {
  return element('label', {class: 'field', for: control.id}, element('span', {}, label), control);
}
