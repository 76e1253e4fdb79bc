// Text that cannot deceive where it is shown: the rules of hermesctl/neutral.py, for a page.
//
// Control characters and bidirectional formatting are shown as �. The page isolates every text by `dir="auto"` and
// `unicode-bidi`, so right-to-left words need no formatting of their own. Characters without a shape are shown as � unless
// they do their usual work between two characters beyond ASCII: joiners in emoji, Persian and Indic words.

export const REPLACEMENT = "�";

const NEVER_SHOWN =
  // eslint-disable-next-line no-control-regex
  /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u206f\ufdd0-\ufdef\ufff0-\ufffb\ufffe\uffff]|\r(?!\n)/g;
const FLAG = /\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{1,6}\u{e007f}/uy;
const TAG = /[\u{e0000}-\u{e007f}]/u;
const SHAPELESS = /[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u2065\u3164\ufeff\uffa0]/;
const SUSPECT = new RegExp(`${SHAPELESS.source}|[\\u{e0000}-\\u{e007f}]`, "u");
const UNDECIDED = new RegExp(
  `(?:${SHAPELESS.source}|[\\ud800-\\udbff]|\\ud83c\\udff4(?:\\udb40[\\udc00-\\udfff])*|\\r){1,32}$`,
);
const MARK = /[\u061c\u200e\u200f]/;
const RIGHT_TO_LEFT = /[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc]/;

/** The text as it may be shown; `before` is the character that it follows. */
export function neutral(text, before = "") {
  const plain = String(text).replaceAll("\r\n", "\n").replace(NEVER_SHOWN, REPLACEMENT);
  return SUSPECT.test(plain) ? withoutShapeless(plain, before) : plain;
}

/** `neutral` for a text that arrives in pieces, cut anywhere: what depends on the next character waits for it. */
export class NeutralPieces {
  constructor() {
    this._held = "";
    this._before = "";
  }

  take(piece) {
    const text = this._held + piece;
    const end = UNDECIDED.exec(text)?.index ?? text.length;
    this._held = text.slice(end);
    return this._shown(text.slice(0, end));
  }

  /** Returns the rest that was held back. */
  end() {
    const text = this._held;
    this._held = "";
    return this._shown(text);
  }

  _shown(text) {
    const shown = neutral(text, this._before);
    this._before = text.at(-1) ?? this._before;
    return shown;
  }
}

function withoutShapeless(text, before) {
  const isRightToLeft = RIGHT_TO_LEFT.test(text);
  let shown = "";
  for (let index = 0; index < text.length;) {
    const sign = String.fromCodePoint(text.codePointAt(index));
    FLAG.lastIndex = index;
    const flag = sign === "\u{1f3f4}" ? FLAG.exec(text)?.[0] : undefined;
    if (flag) {
      shown += flag;
      index += flag.length;
      continue;
    }
    index += sign.length;
    if (TAG.test(sign)) shown += REPLACEMENT;
    else if (MARK.test(sign)) shown += isRightToLeft ? sign : REPLACEMENT;
    else if (SHAPELESS.test(sign)) shown += joins(text[index - 2] ?? before, text[index]) ? sign : REPLACEMENT;
    else shown += sign;
  }
  return shown;
}

function joins(before, after) {
  return [before, after].every((one) => one && one > "\x7f" && !SHAPELESS.test(one));
}

export function oneLine(text) {
  return neutral(text).split(/\s+/).filter(Boolean).join(" ");
}

/** The beginning of a text, with a sign where it was cut. */
export function cut(text, room) {
  return text.length <= room ? text : `${text.slice(0, room - 1).trimEnd()}…`;
}

const SCHEMES = new Set(["http:", "https:", "mailto:"]);

/** The address of a link that may be followed, or null: `javascript:`, `data:` and addresses without a scheme are no links. */
export function safeAddress(address) {
  const wanted = String(address).trim();
  if (neutral(wanted) !== wanted || /\s/.test(wanted)) return null;
  try {
    const parsed = new URL(wanted);
    const hasUser = parsed.username || parsed.password;
    return SCHEMES.has(parsed.protocol) && !hasUser ? parsed.href : null;
  } catch {
    return null;
  }
}
