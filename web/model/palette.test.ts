// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {colourGroup, kTones, toneOf} from './colour_group';
import {NameTable} from './name_table';
import {kVariants, Palette} from './palette';

// What the runtime writes on the row of one thread, and on that of one core.
const kRows = [
  [
    'nrt_execute', 'kbl_exec_pre', 'kbl_exec_core', 'kbl_exec_wait', 'kbl_exec_post', 'enc_barrier', 'kmgr_exec_core',
    'nrt_tensor_read', 'nrt_tensor_write', 'nrt_async_sema_wait', 'dmem_buf_copyin', 'dmem_buf_copyout'
  ],
  ['nc_exec_running', 'cc_running', 'nc_model_switch', 'cc_exec_barrier', 'timestamp_sync_point'],
  ['nrt_tensor_allocate', 'nrt_tensor_free', 'nrt_dma_mem_alloc', 'nrt_dma_mem_dealloc'],
];

// The distance of two colours in CIELAB (CIE 1976): 2.3 is just noticeable side by side.
function distance(a: number[], b: number[]): number {
  const [x, y] = [labOf(a), labOf(b)];
  return Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

function labOf(rgb: number[]): number[] {
  const [r, g, b] = rgb.map(value => value / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const f = (t: number): number => t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116;
  const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505), y = f(0.2126 * r + 0.7152 * g + 0.0722 * b),
        z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function contrast(a: number[], b: number[]): number {
  const [x, y] = [a, b].map(rgb => {
    const [r, g, b2] = rgb.map(value => value / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b2 + 0.05;
  });
  return Math.max(x, y) / Math.min(x, y);
}

const rgbOf = (css: string): number[] => css.match(/\d+/g)!.map(Number);

for (const dark of [false, true]) {
  test(`frequent names of one row are told apart, ${dark ? 'dark' : 'light'}`, () => {
    for (const row of kRows) {
      const names = new NameTable(), numbers = row.map(name => names.number(name, 'neuron_rt'));
      const {css} = new Palette(names.categories, dark);
      const colours = numbers.map(number => rgbOf(css[names.colourOf[number] * kVariants]));
      for (let i = 0; i < row.length; ++i)
        for (let j = 0; j < i; ++j)
          assert.ok(
              distance(colours[i], colours[j]) >= 4, `${row[i]} and ${row[j]}: ${distance(colours[i], colours[j])}`);
    }
  });

  test(`each name is nearer to its category than to the others' first colours, ${dark ? 'dark' : 'light'}`, () => {
    const groups = ['execution', 'collective', 'barrier', 'transfer', 'memory', 'wait'],
          {css} = new Palette(groups, dark);
    const hue = (i: number): number => Math.atan2(labOf(rgbOf(css[i]))[2], labOf(rgbOf(css[i]))[1]);
    const apart = (a: number, b: number): number => Math.abs(Math.atan2(Math.sin(a - b), Math.cos(a - b)));
    groups.forEach((group, g) => {
      for (let tone = 0; tone < kTones; ++tone) {
        const own = hue((g * kTones + tone) * kVariants);
        const nearest = groups.map((_, o) => apart(own, hue(o * kTones * kVariants)));
        assert.equal(nearest.indexOf(Math.min(...nearest)), g, `${group}, tone ${tone}: ${nearest}`);
      }
    });
  });

  test(`text is readable on every colour, ${dark ? 'dark' : 'light'}`, () => {
    const text = dark ? [0xf2, 0xf4, 0xf6] : [0x16, 0x19, 0x1d];
    const categories =
        ['execution', 'collective', 'barrier', 'wait', 'transfer', 'memory', 'error', 'step', 'any', 'x'];
    // WCAG 2.2's 3:1 is for what is seen as a shape; names are in the tooltip too.
    for (const css of new Palette(categories, dark).css) assert.ok(contrast(rgbOf(css), text) >= 3, css);
  });
}

test('a name has one colour, whatever came before it', () => {
  const [a, b] = [new NameTable(), new NameTable()];
  b.number('nrt_execute', 'neuron_rt');
  b.number('enc_barrier', 'neuron_rt');
  const tone = (names: NameTable): number => names.colourOf[names.number('my kernel 7', 'cuda')] % kTones;
  assert.equal(tone(a), tone(b));
  assert.equal(toneOf('cc_running all_reduce'), toneOf('cc_running'));
  assert.notEqual(colourGroup('enc_barrier', 'neuron_rt'), colourGroup('kbl_exec_wait', 'neuron_rt'));
});

test('names and categories beyond the limits share one each', () => {
  const names = new NameTable(3, 2);
  const numbers = ['a', 'b', 'c', 'd', 'e', 'a'].map(name => names.number(name, `category ${name}`));
  assert.deepEqual(numbers, [0, 1, 2, 3, 3, 0]);
  assert.equal(names.names[3], '(further names)');
  assert.equal(names.categories.length, 3);
});
