// Streamed Markdown as nodes: every word becomes a text node once, in the place where the parser is, and is not touched again.
//
// No string is ever read as HTML: raw HTML stays text, a picture becomes a link to it, and only addresses that
// `safeAddress` knows become links. The parser has inputs on which it takes quadratic time (a line of 100,000 backticks) or
// nests without bound, and a browser takes seconds to break a line of a megabyte. So text that is too long, line by line or as
// a whole, goes on as plain text in blocks that are laid out one by one, and deep nesting as siblings.

import { NeutralPieces, safeAddress } from "./shown_text.js";
import { MarkdownAttr, MarkdownToken, markdownEnd, markdownParser, markdownWrite } from "../vendor.js";

// Characters that the parser may hold back before it knows what they are.
const PENDING_MAX = 500;
// Characters of one text, and of one line, that are parsed; beyond them text is plain.
const PARSED_MAX = 300_000;
const LINE_MAX = 10_000;
// Characters of a block of plain text.
const BLOCK = 4_000;
// Characters given to the parser at once; between two of them the limits are checked.
const STEP = 512;
const DEPTH_MAX = 16;

const TAGS = {
  [MarkdownToken.Blockquote]: "blockquote",
  [MarkdownToken.Paragraph]: "p",
  [MarkdownToken.Line_Break]: "br",
  [MarkdownToken.Rule]: "hr",
  [MarkdownToken.Italic_Ast]: "em",
  [MarkdownToken.Italic_Und]: "em",
  [MarkdownToken.Strong_Ast]: "strong",
  [MarkdownToken.Strong_Und]: "strong",
  [MarkdownToken.Strike]: "s",
  [MarkdownToken.Code_Inline]: "code",
  [MarkdownToken.Raw_URL]: "a",
  [MarkdownToken.Link]: "a",
  [MarkdownToken.Image]: "a",
  [MarkdownToken.List_Unordered]: "ul",
  [MarkdownToken.List_Ordered]: "ol",
  [MarkdownToken.List_Item]: "li",
  [MarkdownToken.Table_Row]: "tr",
  [MarkdownToken.Equation_Block]: "code",
  [MarkdownToken.Equation_Inline]: "code",
};
const HEADINGS = [
  MarkdownToken.Heading_1,
  MarkdownToken.Heading_2,
  MarkdownToken.Heading_3,
  MarkdownToken.Heading_4,
  MarkdownToken.Heading_5,
  MarkdownToken.Heading_6,
];
const BLOCKS = new Set(["p", "h3", "h4", "h5", "h6", "li", "blockquote"]);
// The heading of the turn, which is above those of its answer.
const TURN_LEVEL = 2;

/** Writes one text into `root` as it grows. `end` closes it; a text that changes needs a new writer. */
export class MarkdownWriter {
  constructor(root) {
    this._root = root;
    this._pieces = new NeutralPieces();
    this._parsed = 0;
    this._line = 0;
    this._plain = null;
    this._parser = markdownParser(renderer(root));
  }

  write(text) {
    this._write(this._pieces.take(text));
  }

  end() {
    this._write(this._pieces.end());
    if (!this._plain) markdownEnd(this._parser);
  }

  _write(text) {
    for (let at = 0; at < text.length; at += STEP) {
      const step = text.slice(at, at + STEP);
      if (this._plain) {
        this._writePlain(step);
        continue;
      }
      markdownWrite(this._parser, step);
      this._parsed += step.length;
      const newline = step.lastIndexOf("\n");
      this._line = newline < 0 ? this._line + step.length : step.length - newline;
      const isTooLong = this._parsed > PARSED_MAX || this._line > LINE_MAX;
      // What the parser holds back, and all that follows, is shown as it is.
      if (isTooLong || this._parser.pending.length > PENDING_MAX) this._writePlain(this._parser.pending);
    }
  }

  _writePlain(text) {
    if (!this._plain || this._plain.textContent.length > BLOCK) {
      this._plain = this._root.appendChild(element("p", "plain"));
    }
    this._plain.append(text);
  }
}

/** The whole text at once. */
export function writeMarkdown(root, text) {
  const writer = new MarkdownWriter(root);
  writer.write(text);
  writer.end();
}

function renderer(root) {
  return { data: { nodes: [root], level: TURN_LEVEL }, add_token: addToken, end_token: endToken, add_text: addText, set_attr: setAttr };
}

function addToken(data, type) {
  const parent = data.nodes.at(-1);
  if (data.nodes.length > DEPTH_MAX) {
    data.nodes.push(parent);
    return;
  }
  const node = nodeOf(type, parent, data);
  parent.append(node);
  data.nodes.push(node.querySelector(":scope > pre > code, :scope > table") ?? node);
}

function nodeOf(type, parent, data) {
  switch (type) {
    case MarkdownToken.Code_Block:
    case MarkdownToken.Code_Fence:
      return codeBlock();
    case MarkdownToken.Table:
      return tableFrame();
    case MarkdownToken.Table_Cell:
      return element(parent.previousSibling ? "td" : "th");
    case MarkdownToken.Checkbox:
      return element("span", "checkbox");
    case MarkdownToken.Image:
      return element("a", "image");
  }
  const tag = TAGS[type] ?? (HEADINGS.includes(type) ? heading(type, data) : "span");
  const made = element(tag);
  if (BLOCKS.has(tag)) made.dir = "auto";
  return made;
}

/** No level is left out, whatever the answer does: who reads by headings would miss one. */
function heading(type, data) {
  data.level = Math.min(HEADINGS.indexOf(type) + 1 + TURN_LEVEL, data.level + 1, 6);
  return `h${data.level}`;
}

function endToken(data) {
  data.nodes.pop();
}

function addText(data, text) {
  data.nodes.at(-1).append(text);
}

function setAttr(data, type, value) {
  const node = data.nodes.at(-1);
  if (type === MarkdownAttr.Href || type === MarkdownAttr.Src) {
    setAddress(node, value);
  } else if (type === MarkdownAttr.Lang) {
    const label = node.closest?.(".code")?.querySelector(".code-language");
    if (label) label.textContent = value.slice(0, 40);
  } else if (type === MarkdownAttr.Checked) {
    node.classList.add("checked");
  } else if (type === MarkdownAttr.Start) {
    node.start = Number.parseInt(value, 10) || 1;
  }
}

function setAddress(node, value) {
  const address = safeAddress(value);
  if (!address) {
    // No link: its address is shown, so that nothing is hidden.
    if (node.textContent !== value) node.append(` (${value})`);
    return;
  }
  Object.assign(node, { href: address, target: "_blank", rel: "noopener noreferrer nofollow", title: address });
}

function codeBlock() {
  const frame = element("div", "code");
  const bar = frame.appendChild(element("div", "code-bar"));
  bar.appendChild(element("span", "code-language"));
  const copy = bar.appendChild(element("button", "code-copy"));
  copy.type = "button";
  copy.textContent = "Copy";
  const pre = frame.appendChild(element("pre"));
  pre.tabIndex = 0;
  pre.dir = "ltr";
  pre.appendChild(element("code"));
  return frame;
}

function tableFrame() {
  const frame = element("div", "table");
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", "table");
  frame.appendChild(element("table"));
  return frame;
}

function element(tag, name = "") {
  const made = document.createElement(tag);
  if (name) made.className = name;
  return made;
}
