// The one list of what the console takes from other projects. esbuild joins it into vendor.js and leaves the rest out.
export { Component, Fragment, createContext, createRef, h, render } from "preact";
export { useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { batch, computed, effect, signal, untracked } from "@preact/signals";
export { default as htm } from "htm";
export {
  Attr as MarkdownAttr,
  Token as MarkdownToken,
  parser as markdownParser,
  parser_end as markdownEnd,
  parser_write as markdownWrite,
} from "streaming-markdown";
