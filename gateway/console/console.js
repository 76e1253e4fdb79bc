// Made of the modules in gateway/console/modules by `make console`: see console.json.
var Kt={message:"the gateway does not answer",hint:"check that the service runs and that this device is online",code:"away"},g=class extends Error{constructor(e,{message:s,hint:n,code:i},o=0){super(s),this.status=e,this.hint=n??"",this.code=i??"",this.retrySeconds=o}get isPassing(){return this.status===0||this.status===429||this.status>=502}},We=()=>{};function Ue(t){We=t}async function zt(t,e,{json:s,form:n,key:i,signal:o,isLogin:a=!1}={}){let l={};s!==void 0&&(l["Content-Type"]="application/json"),i&&(l["Idempotency-Key"]=i);let c;try{let y=n??(s===void 0?void 0:JSON.stringify(s));c=await fetch(e,{method:t,headers:l,body:y,signal:o,credentials:"same-origin",cache:"no-store"})}catch(y){throw y.name==="AbortError"?y:new g(0,Kt)}if(c.ok)return c.status===204?null:Nn(c);let d=await He(c);throw d.status===401&&!a&&We(d),d}var C=(t,e)=>zt("GET",t,e),v=(t,e)=>zt("POST",t,e),Qt=(t,e)=>zt("DELETE",t,e);async function Nn(t){try{return await t.json()}catch{throw new g(0,Kt)}}async function He(t){let e=Number(t.headers.get("Retry-After"))||0;try{let{error:s}=await t.json();return new g(t.status,s,e)}catch{let s="something between this page and the gateway answered; reload the page";return new g(t.status,{message:`the answer was ${t.status}`,hint:s},e)}}var S=t=>`/api/sessions/${encodeURIComponent(t)}`;function _t(t){let e=t.lastIndexOf("/");return`/api/turns/${encodeURIComponent(t.slice(0,e))}/${t.slice(e+1)}`}async function je(t,e,s){let n=Math.max(0,e-1-s),i=new AbortController,o=[];try{let a=await fetch(`${S(t)}/events?after=${n}`,{signal:i.signal,cache:"no-store"});if(!a.ok)throw await He(a);for await(let l of On(a.body))if(l.seq&&l.seq<e&&o.push(l),!l.seq||l.seq>=e-1)break;return o}catch(a){throw a instanceof g?a:new g(0,Kt)}finally{i.abort()}}async function*On(t){let e=t.pipeThrough(new TextDecoderStream).getReader(),s="";for(;;){let{done:n,value:i}=await e.read();if(n)return;s+=i;let o=s.split(`

`);s=o.pop();for(let a of o){let l=a.split(`
`).find(c=>c.startsWith("data: "));l&&(yield JSON.parse(l.slice(6)))}}}var Rn=/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u206f\ufdd0-\ufdef\ufff0-\ufffb\ufffe\uffff]|\r(?!\n)/g,Ve=/\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{1,6}\u{e007f}/uy,In=/[\u{e0000}-\u{e007f}]/u,bt=/[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u2065\u3164\ufeff\uffa0]/,Ln=new RegExp(`${bt.source}|[\\u{e0000}-\\u{e007f}]`,"u"),Bn=new RegExp(`(?:${bt.source}|[\\ud800-\\udbff]|\\ud83c\\udff4(?:\\udb40[\\udc00-\\udfff])*|\\r){1,32}$`),Dn=/[\u061c\u200e\u200f]/,Pn=/[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc]/;function D(t,e=""){let s=String(t).replaceAll(`\r
`,`
`).replace(Rn,"�");return Ln.test(s)?Wn(s,e):s}var yt=class{constructor(){this._held="",this._before=""}take(e){let s=this._held+e,n=Bn.exec(s)?.index??s.length;return this._held=s.slice(n),this._shown(s.slice(0,n))}end(){let e=this._held;return this._held="",this._shown(e)}_shown(e){let s=D(e,this._before);return this._before=e.at(-1)??this._before,s}};function Wn(t,e){let s=Pn.test(t),n="";for(let i=0;i<t.length;){let o=String.fromCodePoint(t.codePointAt(i));Ve.lastIndex=i;let a=o==="🏴"?Ve.exec(t)?.[0]:void 0;if(a){n+=a,i+=a.length;continue}i+=o.length,In.test(o)?n+="�":Dn.test(o)?n+=s?o:"�":bt.test(o)?n+=Un(t[i-2]??e,t[i])?o:"�":n+=o}return n}function Un(t,e){return[t,e].every(s=>s&&s>""&&!bt.test(s))}function u(t){return D(t).split(/\s+/).filter(Boolean).join(" ")}function K(t,e){return t.length<=e?t:`${t.slice(0,e-1).trimEnd()}…`}var Hn=new Set(["http:","https:","mailto:"]);function Fe(t){let e=String(t).trim();if(D(e)!==e||/\s/.test(e))return null;try{let s=new URL(e),n=s.username||s.password;return Hn.has(s.protocol)&&!n?s.href:null}catch{return null}}function j({killed:t}){let{processes:e=0,all_dead:s=!0,ms:n="?",how:i="?",cancel:o}=t??{};return e?`${e} ${e===1?"process":"processes"} ended in ${n} ms, ${s?i==="pidns"?"none left":"none found":"some may be left"} (${i}${o?`, cancel ${o}`:""})`:s?"nothing of it was running":"what an earlier life left of it is still there"}function vt({processes:t=0,words:e=""}){let s=t===1?"1 process is":`${t} processes are`;return`${t?`was killed, but ${s} still there: ${e}`:`has ended, but ${e}`}; its session is held until then`}function kt({signal:t,exit:e}){return t?u(t):e?`exit ${e}`:""}var jn={length:"cut off: the model's limit of length was reached",content_filter:"cut off by the server's content filter",refusal:"the model declined to answer",empty:"the model gave an empty answer"};function St({finish:t}){let e=u(t||"stop");return e==="stop"?"":jn[e]??`the model ended it: ${e}`}function xt(t){let e=String(t??""),s;try{s=JSON.parse(e)}catch{return u(e.replace(/^\{"\w+": "/,""))}if(s===null||typeof s!="object"||Array.isArray(s))return u(e);let n=Object.entries(s).map(([i,o])=>[i,Ke(o)]);return n.length===1?u(n[0][1]):n.map(([i,o])=>`${u(i)}: ${u(o)}`).join(", ")}function Xe(t){try{let e=JSON.parse(t);if(e&&typeof e=="object"&&!Array.isArray(e))return Object.entries(e).map(([s,n])=>[s,Ke(n)])}catch{}return t?[["",t]]:[]}function Ke(t){return typeof t=="string"?t:JSON.stringify(t)}function Y(t){return t===null?"–":String(Math.round(t)).replace(/\B(?=(\d{3})+$)/g,",")}function J(t,e){return t===1?`1 ${e}`:`${t} ${e}s`}function A(t){if(typeof t!="number")return"–";let e=Math.floor(t);return e<60?t<10&&t!==e?`${t.toFixed(1)}s`:`${e}s`:e<3600?`${Math.floor(e/60)}m ${e%60}s`:e<86400?`${Math.floor(e/3600)}h ${Math.floor(e%3600/60)}m`:`${Math.floor(e/86400)}d ${Math.floor(e%86400/3600)}h`}function Jt(t){if(typeof t!="number")return"–";let e=t;for(let s of["B","KiB","MiB"]){if(e<1e3)return e>=10||s==="B"?`${e.toFixed(0)} ${s}`:`${e.toFixed(1)} ${s}`;e/=1024}return`${e.toFixed(1)} GiB`}function z(t){let e=new Date(t*1e3);return`${Gt(e.getHours())}:${Gt(e.getMinutes())}`}function ze(t){let e=new Date(Math.round(t*1e3));return`${z(t)}:${Gt(e.getSeconds())}.${String(e.getMilliseconds()).padStart(3,"0")}`}var Gt=t=>String(t).padStart(2,"0");function Qe(t,e,s){let n=t.trim();return s.includes(n)?n:/^\d+$/.test(n)&&Number(n)>=1&&Number(n)<=s.length?s[Number(n)-1]:e!=="approve"?n:{y:"yes",n:"no",...s.includes("always")?{a:"always"}:{}}[n.toLowerCase()]??n}function Ge(t){let e=t.ending.usage?.output_tokens;return[z(t.endedAt),t.openedAt?A(Math.max(0,t.endedAt-t.openedAt)):"",e?J(e,"token"):"",t.losses?`${J(t.losses,"attempt")} lost`:""].filter(Boolean).join(" · ")}var nt="hermes.";function q(t,e){try{e===null||e===""?localStorage.removeItem(nt+t):localStorage.setItem(nt+t,JSON.stringify(e))}catch{}}function k(t,e=null){try{return JSON.parse(localStorage.getItem(nt+t))??e}catch{return e}}function Et(t){addEventListener("storage",({key:e})=>{e?.startsWith(nt)&&t(e.slice(nt.length))})}function Je(){try{for(let t of Object.keys(localStorage))t.startsWith(nt)&&localStorage.removeItem(t)}catch{}}import{signal as Vn}from"./vendor.js";var Yt="main",_=Vn(Zt());function Ye(){let t=/^#code=([^&]+)/.exec(location.hash)?.[1];return t?(history.replaceState(null,"",location.pathname),_.value=Zt(),decodeURIComponent(t)):""}function V(t,e=""){location.hash=t==="talk"?`#/talk/${encodeURIComponent(e)}`:`#/${t}`}function Zt(){let[,t,e]=/^#\/(\w+)(?:\/(.*))?$/.exec(location.hash)??[];return t==="watch"?{view:"watch",session:k("session",Yt)}:{view:"talk",session:t==="talk"&&e?Fn(e):k("session",Yt)}}function Fn(t){try{return decodeURIComponent(t)}catch{return Yt}}addEventListener("hashchange",()=>{_.value=Zt(),_.value.view==="talk"&&q("session",_.value.session)});var Ze=/[\ud800-\udfff]/;function te(t){if(!Ze.test(t))return t.length;let e=0;for(let s of t)e+=1;return e}function Mt(t,e){if(!Ze.test(t))return Math.min(e,t.length);let s=0;for(let n=e;n>0&&s<t.length;n-=1)s+=t.codePointAt(s)>65535?2:1;return s}var Xn=new Set(["done","failed","interrupted"]);function Kn(t,e){for(let s=e;s<t.length;s+=1)if(t[s].trim())return!1;return!0}var P=class{constructor(e,s=0){this.id=e,this.openedAt=s,this.messages=[],this.agent="",this.state="queued",this.text="",this.marks=[],this.attempt=0,this.losses=0,this.lost="",this.stuck="",this.endedAt=0,this.ending={},this.note="",this.rewrites=0,this.lastSeq=0,this._points=0}get number(){return Number(this.id.slice(this.id.lastIndexOf("/")+1))}get isOpen(){return!Xn.has(this.state)}get question(){return this._marks("question").find(e=>e.state==="open")??null}get runningTools(){return this._marks("tool").filter(e=>e.state==="running")}pieces(){let e=[],s=0,n=i=>{let o=this.text.slice(s,i);o.trim()&&e.push({key:`text ${this.rewrites} ${s}`,text:o})};for(let[i,o]of this.marks)n(i),e.push({key:o.key,mark:o}),s=Math.max(s,i);return n(this.text.length),e.at(-1)?.text!==void 0&&(e.at(-1).isLast=!0),e}beginAttempt(e){this.attempt=e,this.lost=this.stuck=this.note="",this.state="running"}append(e,s,n){if(!this.isOpen)return!1;let i=e>this.attempt;i&&this.beginAttempt(e);let o=this.note!=="";if(this.note="",s>this._points)return i||o;let a=n.slice(Mt(n,this._points-s)),l=this.text.length>this._tailBegin&&!Kn(this.text,this._tailBegin);return this.text+=a,this._points+=te(a),i||o||!l}get _tailBegin(){return this.marks.reduce((e,[s])=>Math.max(e,s),0)}get tail(){return this.text.slice(this._tailBegin)}remark(e,s=""){if(this.isOpen){this.note=e;for(let n of this.runningTools)n.call===s&&(n.note=e)}}startTool({call:e,name:s,summary:n,at:i}){this._mark({kind:"tool",key:`tool ${this.attempt} ${e}`,call:String(e),name:String(s),summary:String(n??""),attempt:this.attempt,state:"running",startedAt:i,ms:0,ended:"",note:""})}finishTool(e){let s=this._marks("tool").find(n=>n.call===e.call&&n.state==="running");s&&(s.state=e.ok?"ok":"failed",s.ms=Number(e.ms??0),s.ended=kt(e),this.note="")}ask({question:e,kind:s,text:n,choices:i,offset:o}){let a=this.marks.at(-1)?.[1];a?.kind==="tool"&&a.state==="running"&&this.marks.pop(),this._mark({kind:"question",key:`question ${e}`,id:String(e),asks:String(s),text:String(n),choices:(i??[]).map(String),state:"open",answer:"",by:"",offset:o??null}),this.state="asking"}answer({question:e,text:s,by:n}){for(let i of this._marks("question"))i.id===e&&Object.assign(i,{state:"answered",answer:String(s),by:String(n??"")});this.state="queued"}steer(e){this._mark({kind:"steered",key:`steered ${e}`,message:e})}lose(e,s){if(this._cutTools(),this.losses+=1,this.lost=e||"no reason was given",this.state=this.question?"asking":"queued",s==null||s>=this._points)return;let n=Mt(this.text,s);this.text=this.text.slice(0,n),this._points=s,this.marks=this.marks.map(([i,o])=>[Math.min(i,n),o]),this.rewrites+=1}end(e,s){let n=e==="done"?s.text:s.partial;typeof n=="string"&&(n||e==="done")&&this._settle(n),this._cutTools();let i=this.question;i&&(i.state="withdrawn"),Object.assign(this,{state:e,endedAt:s.at,ending:s,lost:"",stuck:"",note:""})}_settle(e){let s=e.startsWith(this.text);s||(this.rewrites+=1),this.marks=this.marks.map(([n,i])=>typeof i.offset=="number"?[Mt(e,i.offset),i]:[s?n:0,i]),this.text=e,this._points=te(e)}_mark(e){this.marks.push([this.text.length,e])}_marks(e){return this.marks.map(([,s])=>s).filter(s=>s.kind===e).reverse()}_cutTools(){for(let e of this.runningTools)e.state="cut"}};var zn=()=>{},Tt=class{constructor(e=zn){this.touched=e,this.items=[],this.messages=new Map,this.turns=new Map,this.firstSeq=0,this.seq=0,this.isHeld=!1,this.busy="",this.begun=null}get openTurn(){let e=this.lastTurn;return e?.isOpen?e:null}get lastTurn(){return this.items.findLast(e=>e instanceof P)??null}get question(){return this.openTurn?.question??null}get waiting(){return[...this.messages.values()].filter(e=>e.state==="waiting"||e.state==="transcribing")}take(e){if(e.type==="delta"){let s=this._turn(e.turn,0);this.touched(s,!s.append(e.attempt,e.offset,e.text))}else if(e.type==="note")this._takeNote(e);else return this._takeEvent(e);return!0}takeQueue(e){let s=new Map;for(let n of e){if(this.isHeld||=!!n.held,this.messages.has(n.message))continue;let i=ee(n.message,n.at??0,n);i.state=n.state==="transcribing"?"transcribing":"waiting",s.set(n.message,i)}s.size&&(this.messages=new Map([...s,...this.messages]),this.touched(null))}forgetBefore(e){let s=0;for(;s<this.items.length-1&&this.items[s].lastSeq<e;){let n=this.items[s++],i=n instanceof P?n.messages:[n.id];this.turns.delete(n.id);for(let o of i)this.messages.delete(o)}this.items.splice(0,s),this.firstSeq=Math.max(this.firstSeq,e),s&&this.touched(null)}_takeEvent(e){if(e.seq<=this.seq)return!1;this.seq=e.seq,this.firstSeq||=e.seq,Qn[e.type]?.(this,e);let s=this.turns.get(e.turn);return s&&(s.lastSeq=e.seq,this.touched(s)),!0}_takeNote({turn:e,text:s,call:n}){this.turns.has(e)?(this.turns.get(e).remark(s,n),this.touched(this.turns.get(e))):this.messages.has(e)&&(this.messages.get(e).note=s,this.touched(null))}_turn(e,s){let n=this.turns.get(e);return n||(n=new P(e,s),this.turns.set(e,n),this.items.push(n),this.touched(null)),n}_of(e){return this._turn(e.turn,e.at)}_message(e){return this.messages.has(e.message)||this.messages.set(e.message,ee(e.message,e.at,{})),this.messages.get(e.message)}_accept(e){let s=ee(e.message,e.at,e);s.state=e.kind==="voice"?"transcribing":"waiting",this.messages.set(e.message,s),this.busy=s.busy||this.busy,this.touched(null)}_understand(e){let s=this._message(e);s.state="waiting",s.text=e.echo===!1?"":String(e.text??""),this.touched(null)}_misunderstand(e){let s=this._message(e);Object.assign(s,{state:"not understood",reason:String(e.reason),hint:String(e.hint??"")}),this._putAside(s,e.seq)}_drop(e){let s=this._message(e);Object.assign(s,{state:"dropped",by:String(e.by??"")}),this._putAside(s,e.seq)}_putAside(e,s){e.lastSeq=s;let n=this.items.length>0&&this.items.at(-1)===this.openTurn;this.items.splice(this.items.length-Number(n),0,e),this.touched(null)}_open(e){let s=this._of(e);s.agent=String(e.agent??s.agent);for(let n of e.messages??[])s.messages.push(n),this._message({message:n,at:e.at}).state="taken";this.touched(null)}_steer(e){this._message(e).state="taken",this._of(e).steer(e.message),this.touched(null)}_answer(e){e.message&&(this._message(e).state="taken"),this._of(e).answer(e),this.touched(null)}_hold(e){this.isHeld=e,this.touched(null)}};function ee(t,e,{text:s,kind:n,busy:i,by:o}){return{id:t,at:e,text:String(s??""),kind:n||"text",busy:String(i??""),state:"waiting",by:String(o??""),reason:"",hint:"",note:"",lastSeq:0}}var se=t=>(e,s)=>{e._of(s).end(t,s),e.touched(null)},Qn={"session.begun":(t,e)=>{t.begun={from:e.from??"",through:e.through??0,turns:e.turns??0},t.touched(null)},"message.accepted":(t,e)=>t._accept(e),"transcript.ready":(t,e)=>t._understand(e),"transcript.failed":(t,e)=>t._misunderstand(e),"message.dropped":(t,e)=>t._drop(e),"session.held":t=>t._hold(!0),"session.released":t=>t._hold(!1),"turn.opened":(t,e)=>t._open(e),"turn.joined":(t,e)=>t._open(e),"attempt.opened":(t,e)=>t._of(e).beginAttempt(Number(e.attempt??1)),"attempt.stuck":(t,e)=>{t._of(e).stuck=vt(e)},"attempt.lost":(t,e)=>t._of(e).lose(String(e.reason??""),e.offset),"tool.started":(t,e)=>t._of(e).startTool(e),"tool.finished":(t,e)=>t._of(e).finishTool(e),"question.asked":(t,e)=>{t._of(e).ask(e),t.touched(null)},"question.answered":(t,e)=>t._answer(e),"turn.steered":(t,e)=>t._steer(e),"turn.done":se("done"),"turn.failed":se("failed"),"turn.interrupted":se("interrupted"),"journal.repaired":(t,e)=>{t.items.push({id:`gap ${e.seq}`,gap:Number(e.lost??0),lastSeq:e.seq}),t.touched(null)}};import{batch as Gn,signal as it}from"./vendor.js";var ts=200,es=1500,ss=1e4,ns=1e3,ne=`tail
`,Jn=100,Ct=class{constructor(e,s,n){this.session=e,this._live=s,this._heard=n,this.state=it("away"),this.shape=it(0),this.interrupting=it(""),this.isReadingEarlier=it(!1),this.past=it([]),this._versions=new Map,this._dirty=new Set,this._isScheduled=!1,this._events=[],this._eventsMax=es,this._log()}_log(){return this.log=new Tt((e,s)=>this._touch(e,s)),this.log}get hasEarlier(){return this.log.firstSeq>1}version(e){return this._versions.has(e)||this._versions.set(e,it(0)),this._versions.get(e)}tailVersion(e){return this.version(ne+e)}follow(){this.log.seq?(this.state.value="joining",this._live.send({subscribe:this.session,after:this.log.seq}),this._readQueue()):(this.state.value="locating",this._live.send({subscribe:this.session}))}begin(){this.state.value==="new"&&(this.state.value="joining",this._live.send({subscribe:this.session,after:0}))}leave(){this._live.send({unsubscribe:this.session}),this.state.value="away"}lost(){this.state.value=this.state.value==="new"?"new":"away",this.interrupting.value=""}take(e){e.type==="subscribed"?this._subscribed(e.seq):e.type==="cut"?this._again(0):e.type==="error"?this._failed(e.error):e.type!=="unsubscribed"&&this.state.value==="following"&&this._takeItem(e)}async readEarlier(){if(!(this.isReadingEarlier.value||!this.hasEarlier||this._events.length>=ss)){this.isReadingEarlier.value=!0;try{let e=await je(this.session,this.log.firstSeq,ts);this._putBefore(e)}finally{this.isReadingEarlier.value=!1}}}_subscribed(e){this.state.value==="joining"?this.state.value="following":this.state.value==="locating"&&(this.state.value="joining",this._live.send({subscribe:this.session,after:Math.max(0,e-ts)}),this._readQueue())}_failed({code:e}){e==="unknown"?(this.state.value="new",this._touch(null)):e==="unavailable"||e==="full"?this._again(ns):(this._events=[],this._log(),this._touch(null),this._again(ns))}_again(e){this.state.value="away",setTimeout(()=>this._live.isUp&&this.state.value==="away"&&this.follow(),e)}_takeItem(e){if(!(!this.log.take(e)||!e.seq)){if(this._events.push(e),this._events.length>this._eventsMax){this._events.splice(0,100),this.log.forgetBefore(this._events[0].seq);for(let s of this._versions.keys())this.log.turns.has(s.replace(ne,""))||this._versions.delete(s)}e.turn===this.interrupting.value&&!this.log.turns.get(e.turn)?.isOpen&&(this.interrupting.value=""),e.type==="session.begun"&&this._readPast(),this._heard(this,e)}}_putBefore(e){let s=this.log,n=e.filter(l=>l.seq<s.firstSeq);this._events=[...n,...this._events],this._eventsMax=Math.min(ss,Math.max(this._eventsMax,this._events.length+es));let i=this._log();for(let l of this._events)i.take(l);for(let[l,c]of s.messages)i.messages.has(l)||i.messages.set(l,c);let o=s.openTurn,a=o&&i.turns.get(o.id);a&&a.append(a.attempt,0,o.text),n.length||(i.firstSeq=1);for(let l of i.items)l instanceof P&&this._dirty.add(l.id);this._touch(null)}async _readQueue(){try{let{messages:e}=await C(`${S(this.session)}/queue`);this.log.takeQueue(e)}catch(e){if(!(e instanceof g))throw e}}async _readPast(){try{let e=await C(`${S(this.session)}/history?before=1&limit=${Jn}`);this.past.value=e.turns.filter(s=>s.state==="past").reverse()}catch(e){if(!(e instanceof g))throw e}}_touch(e,s=!1){this._dirty.add(e instanceof P?(s?ne:"")+e.id:null),!this._isScheduled&&(this._isScheduled=!0,document.hidden?setTimeout(()=>this._draw(),50):requestAnimationFrame(()=>this._draw()))}_draw(){this._isScheduled=!1;let e=this._dirty;this._dirty=new Set,Gn(()=>{for(let s of e)s===null?this.shape.value+=1:this.version(s).value+=1})}};var is=[100,300,700,1500,3e3,5e3],Yn=5e3,os=2e4,Zn=3e4,At=class{constructor({take:e,changed:s,ended:n,address:i=ti()}){this._take=e,this._changed=s,this._ended=n,this._address=i,this._socket=null,this._failures=0,this._timer=0,this._heardAt=0,this._tickedAt=Date.now(),this._isAsked=!1,this._isClosed=!0,this.isUp=!1}open(){this._isClosed&&(this._isClosed=!1,this._ticker=setInterval(()=>this._tick(),Yn),this._now=()=>this.reconnect(),this._seen=()=>document.visibilityState==="visible"&&!this.isUp&&this.reconnect(),addEventListener("online",this._now),document.addEventListener("visibilitychange",this._seen),this._connect())}close(){this._isClosed=!0,clearInterval(this._ticker),clearTimeout(this._timer),removeEventListener("online",this._now),document.removeEventListener("visibilitychange",this._seen),this._drop()}send(e){return this.isUp?(this._socket.send(JSON.stringify(e)),!0):!1}reconnect(){this._isClosed||(clearTimeout(this._timer),this._drop(),this._connect())}_connect(){let e=new WebSocket(this._address);this._socket=e,e.onopen=()=>{e===this._socket&&(this.isUp=!0,this._failures=0,this._heardAt=Date.now(),this._isAsked=!1,this._changed(!0))},e.onmessage=({data:s})=>{e===this._socket&&(this._heardAt=Date.now(),this._isAsked=!1,this._take(JSON.parse(s)))},e.onclose=({code:s})=>{if(e!==this._socket)return;this._lost(),this._ended(s);let n=is[Math.min(this._failures++,is.length-1)];this._isClosed||(this._timer=setTimeout(()=>this._connect(),n))}}_drop(){let e=this._socket;this._socket=null,e?.close(),this._lost()}_lost(){this.isUp&&(this.isUp=!1,this._changed(!1))}_tick(){let e=Date.now(),s=e-this._tickedAt>Zn;this._tickedAt=e,this.isUp&&(s||this._isAsked&&e-this._heardAt>os?this.reconnect():e-this._heardAt>os&&(this._isAsked=!0,this.send({unsubscribe:"?"})))}};function ti(){return`${location.protocol==="https:"?"wss:":"ws:"}//${location.host}/api/live`}import{batch as ei,signal as si}from"./vendor.js";var rs=500,ni=8e3,ii=100,qt=class{constructor(e){this._accepted=e,this.items=si(k("outbox",[])),this._isPumping=!1,this._pause=rs,Et(s=>s==="outbox"&&this._adopt())}of(e){return this.items.value.filter(s=>s.session===e)}get isFull(){return this.items.value.length>=ii}add(e,{text:s="",clip:n=null,busy:i=""}){let o=`console-${crypto.randomUUID?.()??ri()}`;this._set([...this.items.value,{key:o,session:e,text:s,clip:n,busy:i,state:"sending",message:"",fault:"",hint:""}]),this.pump()}remove(e){this._set(this.items.value.filter(s=>s.key!==e))}again(e){this._update(e,{state:"sending",fault:"",hint:""}),this.pump()}forgetArrived(e,s){let n=this.items.value.filter(i=>!(i.session===e&&i.message&&s.has(i.message)));n.length<this.items.value.length&&this._set(n)}async pump(){if(!this._isPumping){this._isPumping=!0,clearTimeout(this._timer);try{for(let e;e=this.items.value.find(s=>s.state==="sending");)await this._send(e),this._pause=rs}catch(e){if(!(e instanceof g))throw e;if(e.status!==401){let s=Math.max(this._pause,e.retrySeconds*1e3);this._timer=setTimeout(()=>this.pump(),s),this._pause=Math.min(this._pause*2,ni)}}finally{this._isPumping=!1}}}async _send(e){try{let{message:s,seq:n}=await v(`${S(e.session)}/messages`,{key:e.key,...oi(e)});this._update(e.key,{state:"accepted",message:s,clip:null}),this._accepted({...e,message:s},n)}catch(s){if((!(s instanceof g)||s.isPassing||s.status===401)&&(s.code!=="full"||e.clip))throw s;this._update(e.key,{state:"refused",fault:s.message,hint:s.hint})}}_update(e,s){this._set(this.items.value.map(n=>n.key===e?{...n,...s}:n))}_set(e){ei(()=>this.items.value=e),q("outbox",e.filter(s=>!s.clip&&s.state!=="accepted"))}_adopt(){let e=k("outbox",[]),s=this.items.value.filter(n=>n.clip||n.state==="accepted");this.items.value=[...s,...e.filter(n=>!s.some(i=>i.key===n.key))]}};function oi({text:t,clip:e,busy:s}){if(!e)return{json:{text:t,...s?{busy:s}:{}}};let n=new FormData;return s&&n.append("busy",s),n.append("audio",e.blob,e.name),{form:n}}function ri(){return Array.from(crypto.getRandomValues(new Uint8Array(16)),t=>t.toString(16).padStart(2,"0")).join("")}var Nt=class{constructor(){this._series=new Map,this._turnsEnded=null}of(e){return this._series.get(e)??[]}take(e,s){if(!e)return;this._put("busy",e.busy??0),this._put("waiting",(e.waiting??0)+(e.queued??0)),this._put("lag",e.lag_ms??0);let n=e.turns_ended??this._turnsEnded;this._turnsEnded!==null&&this._put("ended",Math.max(0,n-this._turnsEnded)),this._turnsEnded=n,this._put("memory",as(s,"memory_bytes")),this._put("cpu",as(s,"cpu_percent"))}_put(e,s){let n=[...this.of(e),Number(s)||0];this._series.set(e,n.slice(-60))}};function as(t,e){return(t??[]).reduce((s,n)=>s+(n[e]??0),0)}function ls(t,e,s){let n=Math.max(...t,1e-9),i=e/59,o=e-i*(t.length-1);return t.map((a,l)=>`${(o+l*i).toFixed(1)},${(s-1-a/n*(s-2)).toFixed(1)}`).join(" ")}import{computed as us,signal as W}from"./vendor.js";var ai=4e3,li=100,ci=50,x=W(null),at=W(""),N=W("connecting"),Q=W(new Map),Rt=W(""),ot=W(k("seen",{})),F=W([]),oe=W(null),re=new Nt,rt=W([]),ae=W(""),m=t=>!!x.value?.rights?.includes(t),U=us(()=>N.value==="up"||N.value==="back"),L=new Map,ds=new Set,ie=[],Z=new At({take:mi,changed:t=>t?pi():fi(),ended:()=>Lt()}),w=new qt(({session:t,message:e})=>{let s=L.get(t);if(!s)return w.forgetArrived(t,new Set([e]));s.begin(),ms(s)});function le(t){ds.add(t)}function It(t){let e=L.get(t);return e||(e=new Ct(t,Z,gi),L.set(t,e),Z.isUp&&e.follow(),di()),e}var ui=20;function di(){let[t]=L.keys();L.size>ui&&(L.get(t).leave(),L.delete(t))}function hs(t){ie=t,Z.send({watch:t})}async function ps(t){Ue(hi),Et(e=>e==="seen"&&(ot.value=k("seen",{}))),t&&await ce({code:t}).catch(e=>at.value=me(e)),x.value||await Lt()}async function ce(t){await v("/api/login",{json:t,isLogin:!0}),at.value="",await Lt()}async function fs(){Z.close(),await v("/api/logout",{isLogin:!0}).catch(()=>{}),Je(),location.reload()}async function Lt(){try{let t=await C("/api/me");x.value||(x.value=t,Z.open(),w.pump())}catch(t){if(!(t instanceof g))throw t;t.status!==401&&x.value===null&&setTimeout(Lt,1e3),t.status!==401&&(N.value="away")}}function hi(){x.value&&(at.value="This browser was signed out. What you typed is kept; log in again to go on."),x.value=!1,Z.close()}function pi(){ue("up"),ie.length&&Z.send({watch:ie});for(let t of L.values())t.follow();w.pump(),Q.value.size||de()}function fi(){ue("away");for(let t of L.values())t.lost()}var cs=0;function ue(t){let e=N.value;if(t===e||t==="up"&&e==="back")return;clearTimeout(cs);let s=t==="up"&&(e==="away"||e==="waiting");N.value=s?"back":t,s&&(cs=setTimeout(()=>N.value==="back"&&(N.value="up"),ai)),s&&w.pump()}function mi(t){t.type==="sessions"?he(t.rows):t.type==="questions"?F.value=t.rows:t.type==="service"?wi(t):t.type==="supervisor"?ue(t.up?"up":"waiting"):$i(t)?.take(t)}function $i({session:t,turn:e}){return t===""&&e?[...L.values()].find(s=>s.log.messages.has(e)):L.get(t)}function gi(t,e){ms(t),_i(t,e);for(let s of ds)s(t,e)}function ms(t){w.forgetArrived(t.session,t.log.messages)}function wi({status:t,workers:e,services:s}){oe.value={status:t,workers:e,services:s},re.take(t,e)}async function de(t=""){try{let e=await C(`/api/sessions?limit=${li}${t?`&after=${encodeURIComponent(t)}`:""}`);he(e.sessions),Rt.value=e.more}catch(e){if(!(e instanceof g))throw e}}async function $s(t){return(await C(`/api/sessions?limit=50&words=${encodeURIComponent(t)}`)).sessions}function he(t){if(!t.length)return;let e=new Map(Q.value);for(let s of t)e.set(s.session,{...e.get(s.session),...s});Q.value=e;for(let s of t)s.seq&&L.get(s.session)?.begin()}var Ot=new Map;function _i(t,e){Ot.size||setTimeout(()=>{he([...Ot.values()]),Ot.clear()},ci),Ot.set(t.session,yi(t,e))}function yi({session:t,log:e},s){let n=e.openTurn?"occupied":e.isHeld?"held":"free";return{session:t,seq:e.seq,last_at:s.at,state:n,waiting:e.waiting.length}}var Bt=us(()=>[...Q.value.values()].sort((t,e)=>(e.last_at??0)-(t.last_at??0)));function gs(t,e){!e||ot.value[t]>=e||(ot.value={...ot.value,[t]:e},q("seen",ot.value))}function pe(t){let e=ot.value[t.session];return e!==void 0&&t.seq>e}var bi=0;function E(t,e="",s="fault"){let n=++bi;rt.value=[...rt.value.slice(-3),{id:n,fault:t,hint:e,tone:s}],s!=="fault"&&setTimeout(()=>fe(n),5e3)}function fe(t){rt.value=rt.value.filter(e=>e.id!==t)}async function $(t){try{return await t()}catch(e){if(!(e instanceof g))throw e;e.status!==401&&E(pt(e.message),pt(e.hint));return}}var me=t=>[t.message,t.hint].filter(Boolean).map(pt).join(". "),pt=t=>t.charAt(0).toUpperCase()+t.slice(1);function tt(t){ae.value=t}function lt(t){let e=t.log.openTurn;return e?U.value?(t.interrupting.value=e.id,$(async()=>{try{let s={expect_turn:e.id},n=await v(`${S(t.session)}/interrupt`,{json:s});n.unwritten?E(`Stopped: ${j(n)}`,`Not yet written down: ${n.unwritten}`,"plain"):n.turn&&tt(`Interrupted: ${j(n)}`)}finally{t.interrupting.value===e.id&&(t.interrupting.value="")}}),!0):(E("The supervisor is away, so nothing can be stopped now","What runs is settled when it is back"),!1):!1}async function Dt(t,e){let s=Qe(e,t.asks??t.kind,t.choices??[]),n=t.id??t.question,i=`/api/questions/${encodeURIComponent(n)}/answer`;return await $(()=>v(i,{json:{text:s}}))!==void 0}var _s=(t,e)=>$(()=>Qt(`${S(t)}/queue/${encodeURIComponent(e)}`)),ys=t=>$(()=>Qt(`${S(t)}/queue`)),bs=t=>$(()=>v(`${S(t)}/queue/resume`)),vs=t=>$(()=>v(`${_t(t)}/retry`,{key:crypto.randomUUID?.()}));function ks(t){return $(()=>v(`/api/messages/${encodeURIComponent(t)}/retry`,{key:crypto.randomUUID?.()}))}var Ss=t=>C(`${_t(t)}/why`),xs=t=>C(`/api/messages/${encodeURIComponent(t)}/why`),Es=(t,e)=>C(`${_t(t)}/calls/${encodeURIComponent(e)}`);async function Ms(t,e,s){let n=await vi(t),i={through_turn:e.number-1,session:n};return await $(()=>v(`${S(t)}/fork`,{json:i,key:`fork ${n}`}))?(w.add(n,{text:s}),V("talk",n),!0):!1}var Ts=/^(.*)~(\d+)$/,ft=t=>Ts.exec(t)?.[1]??t;function $e(t){let e=ft(t),s=[...Q.value.keys()].filter(n=>ft(n)===e&&n!==e);return t!==e&&!s.includes(t)&&s.push(t),s.length?[e,...s.sort((n,i)=>ws(n)-ws(i))]:[]}var ws=t=>Number(Ts.exec(t)?.[2]??1);async function vi(t){let e=ft(t),s=$e(t);for(let n=2;;n+=1){let i=`${e}~${n}`;if(!s.includes(i)&&!await ki(i))return i}}async function ki(t){try{return await C(`${S(t)}/queue`),!0}catch(e){return e.status!==404}}var Cs=()=>$(()=>v("/api/drain")),As=()=>$(()=>v("/api/undrain")),qs=t=>$(()=>v("/api/scale",{json:{seats:t}}));import{h as Ns,htm as Si,useEffect as xi,useRef as Ei}from"./vendor.js";var r=Si.bind(Ns),Mi={send:"M5 12h13M12 5l7 7-7 7",stop:"M7 7h10v10H7z",mic:"M12 15a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v6a3 3 0 0 0 3 3zM5 11a7 7 0 0 0 14 0M12 18v3",menu:"M4 7h16M4 12h16M4 17h16",plus:"M12 5v14M5 12h14",close:"M6 6l12 12M18 6L6 18",watch:"M3 12h4l3-7 4 14 3-7h4",help:"M9.2 9a3 3 0 1 1 4.3 2.7c-.9.5-1.5 1.2-1.5 2.3M12 17.5v.01M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",bell:"M18 9a6 6 0 0 0-12 0c0 6-2 7-2 7h16s-2-1-2-7M10.5 20a2 2 0 0 0 3 0",leave:"M10 4H5v16h5M15 8l4 4-4 4M19 12H9",search:"M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l4.5 4.5",edit:"M4 20h4L19 9l-4-4L4 16zM13 7l4 4",retry:"M20 12a8 8 0 1 1-2.5-5.8M20 4v4h-4",copy:"M9 9h10v10H9zM5 15V5h10",why:"M12 8v5l3 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",down:"M12 5v14M6 13l6 6 6-6",back:"M19 12H5M11 6l-6 6 6 6",fold:"M9 6l6 6-6 6",branch:"M7 5v14M7 12c6 0 10-1 10-6M17 6V4M7 5V3",theme:"M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18"};function O({name:t}){return r`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${Mi[t]} /></svg>`}function f({icon:t,label:e,class:s="",...n}){return r`<button type="button" class=${`icon-button ${s}`} aria-label=${e} title=${e} ...${n}>
    <${O} name=${t} />
  </button>`}function h({of:t,class:e="",tag:s="span"}){return Ns(s,{class:e,dir:"auto"},D(t))}function Pt({title:t,onClose:e,children:s,class:n=""}){let i=Ei(null);xi(()=>{let a=i.current;return a.showModal(),()=>a.close()},[]);let o=a=>a.target===i.current&&e();return r`<dialog ref=${i} class=${`dialog ${n}`} aria-label=${t} onClose=${e} onClick=${o}>
    <div class="dialog-inner">
      <header class="dialog-head">
        <h2>${t}</h2>
        <${f} icon="close" label="Close" onClick=${e} />
      </header>
      ${s}
    </div>
  </dialog>`}async function Wt(t){try{return await navigator.clipboard.writeText(t),!0}catch{return!1}}var Ti=[["Enter","send; with Shift a new line (on a phone the button sends)"],["Esc","stop what runs, withdraw a question, cancel a recording; close a dialog"],["/","write"],["Alt ↑, Alt ↓","the session above, below"],["Ctrl K","search sessions"],["?","this list"]];function Os({onClose:t}){return r`<${Pt} title="Keys" onClose=${t}>
    <dl class="keys">
      ${Ti.map(([e,s])=>r`<div key=${e}><dt><kbd>${e}</kbd></dt><dd>${s}</dd></div>`)}
    </dl>
    <p class="dim small">
      Hold the microphone to talk, or click it and click again. A sound file can be dropped on the conversation. A pencil beside
      your words asks them otherwise, in a branch. A clock shows why: every step of a message or a turn.
    </p>
  <//>`}import{useState as Rs}from"./vendor.js";var Is=/^[a-z0-9]{4}[- ]?[a-z0-9]{4}$/i;function Ls(){let[t,e]=Rs(""),[s,n]=Rs(!1);return r`<main class="login">
    <form class="login-card" onSubmit=${async o=>{o.preventDefault();let a=t.trim();if(!(!a||s)){n(!0);try{await ce(Is.test(a)?{code:a.replace(" ","-").toUpperCase()}:{token:a})}catch(l){if(!(l instanceof g))throw l;at.value=me(l)}finally{n(!1)}}}}>
      <${ge} />
      <h1>hermes supervisor</h1>
      <p class="dim">
        On the machine where it runs, <code>hermesctl pair</code> prints a code that is valid for five minutes.
      </p>
      <label for="secret">Pairing code or token</label>
      <input
        id="secret"
        type=${Is.test(t.trim())||!t?"text":"password"}
        autocomplete="off"
        autocapitalize="characters"
        spellcheck=${!1}
        placeholder="ABCD-EFGH"
        value=${t}
        onInput=${o=>e(o.target.value)}
        autofocus
      />
      <p class="login-reason" role="alert">${at}</p>
      <button class="primary" type="submit" disabled=${s}>${s?"Logging in …":"Log in"}</button>
    </form>
  </main>`}function ge(){return r`<svg class="mark" viewBox="0 0 48 48" aria-hidden="true">
    <rect class="mark-ground" width="48" height="48" rx="12" />
    <path class="mark-wing" d="M12 31c8 0 12-4 13-14 2 5 1 9-1 12 4-1 7-5 8-10 3 8-2 17-12 17-4 0-7-2-8-5z" />
    <circle class="mark-dot" cx="35" cy="13" r="3" />
  </svg>`}import{effect as Bs,signal as Ci,untracked as Ds}from"./vendor.js";var we=Ci(k("notices",!1)),Us="Notification"in window,Ps="hermes",Ai=new Set(["turn.done","turn.failed","turn.interrupted"]);function Hs(){if(!Us)return null;let t=we.value&&Notification.permission==="granted";return r`<${f} icon="bell" class=${t?"on":""} label=${t?"Notices are on: switch off":"Notices when a turn ends or asks: switch on"} aria-pressed=${t} onClick=${async()=>{if(t)return Ws(!1);let n=await Notification.requestPermission();return n!=="granted"&&E("The browser does not allow notices of this page","Allow them in the settings of the site, then switch them on again"),Ws(n==="granted")}} />`}function Ws(t){we.value=t,q("notices",t)}function js({session:t},e){Ai.has(e.type)&&Ut(t,qi[e.type](e),`${t} turn`),e.type==="question.asked"&&Ut(t,`asks: ${K(u(e.text),120)}`,`${t} question`)}var qi={"turn.done":({text:t})=>K(u(t),140)||"has answered","turn.failed":({error:t})=>`failed: ${K(u(t),120)}`,"turn.interrupted":()=>"was interrupted"};async function Ut(t,e,s){if(!document.hidden||!we.value||!Us||Notification.permission!=="granted")return;let n={body:e,tag:s,icon:"/console/icon-192.png",data:{session:t}},i=await navigator.serviceWorker?.getRegistration();i?await i.showNotification(t,n):new Notification(t,n).onclick=()=>window.focus()}function Vs(t){let e=null,s=new Map;Bs(()=>{let n=F.value,i=e;if(e=new Set(n.map(o=>o.question)),document.title=n.length?`(${n.length}) ${Ps}`:Ps,!!i)for(let o of n)!i.has(o.question)&&!t(o.session)&&Ds(()=>Ut(o.session,`asks: ${K(u(o.text),120)}`,`${o.session} question`))}),Bs(()=>{let n=Q.value;for(let[i,o]of n)s.get(i)?.state==="occupied"&&o.state!=="occupied"&&!t(i)&&Ds(()=>Ut(i,"has news",`${i} turn`));s=n})}import{useEffect as Ii,useState as Xs}from"./vendor.js";import{effect as Ni,signal as Oi}from"./vendor.js";var Ri={system:"light",light:"dark",dark:"system"},ct=Oi(k("theme","system"));Ni(()=>{ct.value==="system"?delete document.documentElement.dataset.theme:document.documentElement.dataset.theme=ct.value});function Fs(){let t=()=>{ct.value=Ri[ct.value],q("theme",ct.value)};return r`<${f} icon="theme" label=${`Theme: ${ct.value}`} onClick=${t} />`}var Li=250;function Ks({onChosen:t,onHelp:e}){let[s,n]=Xs(""),[i,o]=Xs(null);Ii(()=>{if(!s.trim())return o(null);let d=!0,y=setTimeout(async()=>{let I=await $(()=>$s(s.trim()));d&&I&&o(I)},Li);return()=>{d=!1,clearTimeout(y)}},[s]);let a=d=>{V("talk",d),t()},l=d=>{d.preventDefault(),s.trim()&&a(s.trim()),n("")},c=i??Bt.value;return r`<div class="side-inner">
    <header class="brand">
      <${ge} />
      <div>
        <strong>hermes</strong>
        <div class="dim small">${x.value.owner||x.value.name}</div>
      </div>
      <span class=${`link-dot ${N.value}`} title=${Bi[N.value]}></span>
    </header>
    <form class="search" role="search" onSubmit=${l}>
      <${O} name="search" />
      <input
        type="search"
        aria-label="Search sessions, or name a new one"
        placeholder="Search or new name"
        value=${s}
        onInput=${d=>n(d.target.value)}
      />
      <${f} icon="plus" label="New session" onClick=${()=>a(s.trim()||Ui())} />
    </form>
    <nav class="sessions" aria-label="Sessions">
      <ul>
        ${c.map(d=>r`<${Di} key=${d.session} row=${d} onOpen=${a} />`)}
      </ul>
      ${i&&!c.length&&r`<p class="dim side-note">No session has these words. Enter begins one of this name.</p>`}
      ${!i&&Rt.value&&r`<button type="button" class="quiet wide" onClick=${()=>de(Rt.value)}>Earlier sessions</button>`}
    </nav>
    <footer class="side-foot">
      ${m("operate")&&r`<a class="foot-link" href="#/watch" aria-current=${_.value.view==="watch"?"page":void 0} onClick=${t}>
        <${O} name="watch" /> Watch
        ${F.value.length>0&&r`<span class="count" title="open questions">${F.value.length}</span>`}
      </a>`}
      <span class="foot-buttons">
        <${Hs} />
        <${Fs} />
        <${f} icon="help" label="Keys and help (?)" onClick=${e} />
        <${f} icon="leave" label="Log out" onClick=${fs} />
      </span>
    </footer>
  </div>`}var Bi={connecting:"connecting",up:"connected",back:"connected again",away:"the gateway does not answer",waiting:"the supervisor is away"};function Di({row:t,onOpen:e}){let s=_.value.view==="talk"&&_.value.session===t.session,n=F.value.some(o=>o.session===t.session),i=n?"asks":Pi[t.state]??t.state;return r`<li>
    <a
      class=${`session-row ${pe(t)&&!s?"news":""}`}
      href=${`#/talk/${encodeURIComponent(t.session)}`}
      aria-current=${s?"page":void 0}
      onClick=${o=>{o.preventDefault(),e(t.session)}}
    >
      <span class=${`dot ${n?"asking":t.state==="at rest"?"rest":t.state}`}></span>
      <${h} class="session-name" of=${t.session} />
      <span class="session-facts small dim">
        ${i&&r`<span>${i}</span>`}
        ${t.waiting>0&&r`<span>${t.waiting} waiting</span>`}
        ${!i&&t.last_at&&r`<span>${Wi(t.last_at)}</span>`}
      </span>
      ${pe(t)&&!s&&r`<span class="news-dot"><span class="unseen">has news</span></span>`}
    </a>
  </li>`}var Pi={occupied:"running",held:"held",free:"","at rest":""};function Wi(t){let e=Math.max(0,Math.floor(Date.now()/1e3-t));return e<60?"now":A(e).split(" ")[0]}function Ui(){return`chat-${new Date().toISOString().slice(5,10)}-${String(crypto.getRandomValues(new Uint16Array(1))[0]%1e4).padStart(4,"0")}`}var Hi=["audio/webm;codecs=opus","audio/mp4","audio/ogg;codecs=opus","audio/webm"];var H=class extends Error{constructor(e,s){super(e),this.hint=s}};function ji(){return window.isSecureContext?!navigator.mediaDevices?.getUserMedia||!window.MediaRecorder?new H("This browser cannot record sound","Use a current browser, or drop a sound file here"):null:new H("Browsers give the microphone only to secure pages, and this address is not one","Open it on the machine itself (http://localhost), through `ssh -L 8790:localhost:8790 HOST`, or set tls_cert and tls_key")}var Ht=class{constructor(e){this._ended=e,this._isCancelled=!1,this._why="",this._loudest=0,this._parts=[]}async start(){let e=ji();if(e)throw e;try{this._stream=await navigator.mediaDevices.getUserMedia({audio:{echoCancellation:!0,noiseSuppression:!0}})}catch(n){throw Vi(n)}if(this._isCancelled)return this._close();this._measure();let s=Hi.find(n=>MediaRecorder.isTypeSupported(n));this._recorder=new MediaRecorder(this._stream,{mimeType:s,audioBitsPerSecond:32e3}),this._recorder.ondataavailable=({data:n})=>n.size&&this._parts.push(n),this._recorder.onstop=()=>this._finish(),this._recorder.onerror=()=>this._stop("the recording failed in the browser"),this._stream.getAudioTracks()[0].onended=()=>this._stop("the microphone is gone"),this.startedAt=performance.now(),this._recorder.start(1e3),this._timer=setTimeout(()=>this._stop("15 minutes are the most"),900*1e3)}get seconds(){return this.startedAt===void 0?0:(performance.now()-this.startedAt)/1e3}level(){if(!this._analyser)return 0;this._analyser.getFloatTimeDomainData(this._samples);let e=0;for(let s of this._samples)e=Math.max(e,Math.abs(s));return this._loudest=Math.max(this._loudest,e),Math.min(1,Math.sqrt(e))}stop(){this._stop("")}cancel(){this._isCancelled=!0,this._stop(""),this._recorder||this._close()}_measure(){this._context=new AudioContext,this._analyser=this._context.createAnalyser(),this._analyser.fftSize=1024,this._samples=new Float32Array(this._analyser.fftSize),this._context.createMediaStreamSource(this._stream).connect(this._analyser),this._meter=setInterval(()=>this.level(),100)}_stop(e){this._why||=e,this._recorder?.state==="recording"&&this._recorder.stop()}_finish(){let e=this.seconds;if(this._close(),this._isCancelled)return this._ended(null);let s=this._recorder.mimeType.split(";")[0],n=new Blob(this._parts,{type:s}),i=`recording.${s.split("/")[1]}`;return this._ended({blob:n,name:i,seconds:e,isSilent:this._loudest<.01,why:this._why})}_close(){clearTimeout(this._timer),clearInterval(this._meter);for(let e of this._stream?.getTracks()??[])e.onended=null,e.stop();this._context?.close(),this._analyser=null}};function Vi({name:t,message:e}){let s={NotAllowedError:["The browser does not give this page the microphone","Allow it in the settings of the site, beside the address, then try again"],NotFoundError:["There is no microphone here","Plug one in, or drop a sound file here"],NotReadableError:["The microphone is in use, or does not answer","Close what else uses it, then try again"]};return new H(...s[t]??[`The microphone did not start: ${e}`,"Try again, or drop a sound file here"])}function zs(t){return/^(audio|video)\//.test(t.type)||/\.(ogg|oga|opus|webm|mp3|m4a|mp4|wav|flac|aac)$/i.test(t.name)?t.size?t.size>26214400?new H(`${t.name} has ${(t.size/1024/1024).toFixed(0)} MiB, the limit is 25 MiB`,"Send it compressed (OGG/Opus), or in parts"):null:new H(`${t.name} is empty`,"Choose another file"):new H(`${t.name} is no sound file`,"Sound files can be dropped here; put words into the message itself")}import{signal as nn,useEffect as Qi,useLayoutEffect as Gi,useRef as Ji}from"./vendor.js";import{signal as Gs,useEffect as Xi,useRef as ye}from"./vendor.js";var M=Gs("off"),mt=Gs(null),Ki=350,B=null;async function Qs(t){if(M.value==="off"){M.value="starting",mt.value=null,B=new Ht(e=>{if(B=null,M.value="off",!e)return tt("The recording was cancelled");e.isSilent||e.why?mt.value=e:t(e)});try{await B.start(),B&&M.value==="starting"&&(M.value="on",tt("Recording"))}catch(e){if(B=null,M.value="off",!(e instanceof H))throw e;E(e.message,e.hint)}}}function _e(){B?.stop()}function be(){if(M.value==="off")return!1;M.value="off";let t=B;return B=null,t?.cancel(),!0}function Js({onRecorded:t}){let e=ye(0),s=a=>{if(a.button===0){if(a.preventDefault(),M.value==="on")return _e();e.current=performance.now(),a.currentTarget.setPointerCapture(a.pointerId),Qs(t)}},n=()=>{let a=performance.now()-e.current;e.current&&a>Ki&&M.value==="on"&&_e(),e.current=0},i=a=>{a.detail===0&&(M.value==="on"?_e():Qs(t))},o=M.value!=="off";return r`<${f}
    icon=${o?"send":"mic"}
    class=${o?"mic on":"mic"}
    label=${o?"Send the recording":"Record a message: hold, or click twice"}
    aria-pressed=${o}
    onPointerDown=${s}
    onPointerUp=${n}
    onClick=${i}
  />`}function Ys(){let t=ye(null),e=ye(null);return Xi(()=>zi(t.current,e.current),[]),r`<div class="recording" role="group" aria-label="Recording">
    <span class="recording-dot" aria-hidden="true"></span>
    <span ref=${e} class="recording-clock">0:00</span>
    <canvas ref=${t} class="meter" aria-hidden="true"></canvas>
    <button type="button" class="quiet" onClick=${be}>Cancel</button>
  </div>`}function zi(t,e){let s=t.getContext("2d"),n=[],i=0,o=()=>{if(i=requestAnimationFrame(o),!B)return;let{clientWidth:a,clientHeight:l}=t;for(t.width!==a&&Object.assign(t,{width:a,height:l}),n.push(B.level());n.length>a/3;)n.shift();s.clearRect(0,0,a,l),s.fillStyle=getComputedStyle(t).color,n.forEach((d,y)=>{let I=Math.max(2,d*l);s.fillRect(a-(n.length-y)*3,(l-I)/2,2,I)});let c=900-B.seconds;e.textContent=c<60?`${Math.ceil(c)}s left`:tn(B.seconds)};return o(),()=>cancelAnimationFrame(i)}function Zs({onRecorded:t}){let e=mt.value;if(!e)return null;let s=e.why?`The recording ended after ${tn(e.seconds)}: ${e.why}`:"Nothing was heard in this recording",n=e.why?"Send what there is, or record again":"Check that the right microphone is chosen and not muted, then record again";return r`<div class="doubtful" role="alert">
    <p>${s}. <span class="dim">${n}.</span></p>
    <span>
      <button type="button" class="quiet" onClick=${()=>{mt.value=null,t(e)}}>Send it</button>
      <button type="button" class="quiet" onClick=${()=>mt.value=null}>Discard</button>
    </span>
  </div>`}var tn=t=>`${Math.floor(t/60)}:${String(Math.floor(t%60)).padStart(2,"0")}`;var ve={"":"as the session is set",interrupt:"stops what runs, then is answered",queue:"waits its turn",steer:"the running agent takes it in",collect:"waits, and is answered together with others"},Yi=2e4,Zi=1024*1024,en=matchMedia("(pointer: coarse)").matches,ke=new Map;function $t(t){return ke.has(t)||ke.set(t,nn(k(`draft.${t}`,""))),ke.get(t)}function et(t,e){$t(t).value=e,xe.add(t),clearTimeout(sn),sn=setTimeout(Ee,to)}var to=400,xe=new Set,sn=0;function Ee(){for(let t of xe)q(`draft.${t}`,$t(t).value);xe.clear()}addEventListener("pagehide",Ee);document.addEventListener("visibilitychange",Ee);function on({conversation:t,editing:e,onEditing:s}){t.shape.value;let{session:n,log:i}=t,o=Ji(null),a=$t(n),l=so(n),c=i.question,d=i.openTurn;Gi(()=>oo(o.current),[a.value,M.value]),Qi(()=>{en||o.current?.focus({preventScroll:!0})},[n,e]);let y=async T=>{T?.preventDefault();let G=a.value;!G.trim()||!m("talk")||(new TextEncoder().encode(G).length>Zi?E("The message has more than 1 MiB","Put the large part in a file and name the file in the message"):e?await Ms(n,e.turn,G)&&(s(null),et(n,"")):c?U.value?await Dt(c,G)&&et(n,""):E("The supervisor is away, and answers are not kept","Answer when it is back; your words stay here"):w.isFull?E("100 messages are on their way","Wait until some are accepted"):(w.add(n,{text:G,busy:l.value}),et(n,"")))},I=T=>{T.key!=="Enter"||T.isComposing||T.shiftKey||en&&!T.ctrlKey&&!T.metaKey||y(T)},b=T=>w.add(n,{clip:T,busy:l.value}),X=M.value==="on",ht=!!a.value.trim();return r`<form class=${`composer ${e?"editing":""}`} onSubmit=${y}>
    ${e&&r`<div class="composer-note">
      <span>Other words for turn ${e.turn.number}: they open a branch, this one stays.</span>
      <button type="button" class="quiet" onClick=${()=>s(null)}>Cancel</button>
    </div>`}
    ${c&&!e&&r`<div class="composer-note ask">What you write answers the question. Esc withdraws it.</div>`}
    <${Zs} onRecorded=${b} />
    ${X?r`<${Ys} />`:r`<textarea
          ref=${o}
          rows="1"
          dir="auto"
          aria-label=${c?"Answer":"Message"}
          placeholder=${m("talk")?io(n,c,d):"This token may only watch"}
          disabled=${!m("talk")}
          value=${a.value}
          onInput=${T=>et(n,T.target.value)}
          onKeyDown=${I}
        ></textarea>`}
    <div class="composer-row">
      <${no} mode=${l} isBusy=${!!d} set=${i.busy} />
      <span class="composer-buttons">
        ${d&&m("talk")&&r`<${f} icon="stop" class="stop" label="Stop what runs (Esc)" onClick=${()=>lt(t)} />`}
        ${(!ht||X)&&m("talk")&&r`<${Js} onRecorded=${b} />`}
        ${!X&&r`<button type="submit" class="icon-button send" aria-label="Send" title="Send (Enter)"
            disabled=${!ht}><${eo} /></button>`}
      </span>
    </div>
  </form>`}var eo=()=>r`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="M12 19V5M5 12l7-7 7 7" /></svg>`,Se=new Map;function so(t){Se.has(t)||Se.set(t,nn(k(`busy.${t}`,"")));let e=Se.get(t);return{get value(){return e.value},set value(s){e.value=s,q(`busy.${t}`,s)}}}function no({mode:t,isBusy:e,set:s}){let n=ve[t.value||s]??ve[""];return r`<label class="mode" title=${`While a turn runs, a message ${n}`}>
    <span class="mode-label">${e?"now":"while busy"}</span>
    <select value=${t.value} onChange=${i=>t.value=i.target.value} aria-label="What a message does to a running turn">
      <option value="">${s?`default (${s})`:"default"}</option>
      ${Object.keys(ve).filter(Boolean).map(i=>r`<option key=${i} value=${i}>${i}</option>`)}
    </select>
    <span class="mode-means">${n}</span>
  </label>`}function io(t,e,s){return e?e.asks==="approve"?"yes, no, or a reason":"Your answer":s?`Add to ${t}`:`Message ${t}`}function oo(t){if(t){if(t.value.length>Yi){t.style.height="40dvh";return}t.style.height="auto",t.style.height=`${Math.min(t.scrollHeight,innerHeight*.4)}px`}}function rn(t,e){for(let s of e){let n=zs(s);n?E(n.message,n.hint):w.add(t.session,{clip:{blob:s,name:s.name},busy:k(`busy.${t.session}`,"")})}}import{useState as ln}from"./vendor.js";var an=3e3;function Me({message:t,onEdit:e,onWhy:s}){return!t||!(t.text||t.kind==="voice")?r`<div class="you"><p class="bubble dim">(said earlier)</p></div>`:r`<div class="you">
    <div class="bubble">
      ${t.kind==="voice"&&r`<${ro} message=${t.id} />`}
      <${Te} text=${t.text||"(clip)"} />
    </div>
    <div class="you-tools">
      ${e&&m("talk")&&r`<${f} icon="edit" label="Edit: ask this otherwise, in a branch" onClick=${()=>e(t)} />`}
      <${f} icon="why" label="Why: the history of this message" onClick=${()=>s(t.id)} />
    </div>
  </div>`}function Te({text:t}){let[e,s]=ln(!1),n=t.length>an&&!e;return r`<${h} tag="p" class="said" of=${n?`${t.slice(0,an)}…`:t} />
    ${n&&r`<button type="button" class="quiet"
        onClick=${()=>s(!0)}>Show all ${Y(t.length)} characters</button>`}`}function ro({message:t}){let[e,s]=ln(!1);return e?r`<audio class="clip" controls autoplay src=${`/api/messages/${encodeURIComponent(t)}/clip`}></audio>`:r`<button type="button" class="clip-play" onClick=${()=>s(!0)} aria-label="Play the clip">
      <span aria-hidden="true">🎙️ ▸</span>
    </button>`}function cn({message:t,onWhy:e}){return t.state==="not understood"?r`<div class="aside fault">
      <p><span aria-hidden="true">🎙️ </span>Not understood: <${h} of=${u(t.reason)} /></p>
      <p class="dim small"><${h} of=${u(t.hint)} /></p>
      <p class="aside-tools">
        ${m("talk")&&r`<button type="button" class="quiet" onClick=${()=>ks(t.id)}>Transcribe again</button>`}
        <button type="button" class="quiet" onClick=${()=>e(t.id)}>Why</button>
      </p>
    </div>`:r`<p class="aside dim">– taken back: <${h} of=${u(t.text)||"a clip"} /></p>`}var Ce=6;function un({conversation:t,onPutBack:e}){let s=t.shape.value,{log:n,session:i}=t,o=n.waiting,a=w.of(i);if(!o.length&&!a.length)return null;let l=o.length>0&&n.isHeld;return r`<section class="queue" aria-label="Waiting messages">
    ${o.length>0&&r`<header class="queue-head">
      <span class=${l?"held":"dim"}>
        ${l?"held by the interrupt until your next message":`${o.length} waiting`}
      </span>
      <span>
        ${l&&m("talk")&&r`<button type="button" class="quiet" onClick=${()=>bs(i)}>Resume</button>`}
        ${o.length>1&&m("talk")&&r`<button type="button" class="quiet" onClick=${()=>ys(i)}>Drop all</button>`}
      </span>
    </header>`}
    <ol>
      ${o.slice(0,Ce).map((c,d)=>r`<${ao} key=${c.id} number=${d+1} message=${c} version=${s} session=${i} />`)}
      ${o.length>Ce&&r`<li class="dim small">and ${o.length-Ce} more</li>`}
      ${a.map(c=>r`<${lo} key=${c.key} item=${c} onPutBack=${e} />`)}
    </ol>
  </section>`}function ao({number:t,message:e,session:s}){let n=u(e.text)||(e.kind==="voice"?u(e.note)||"🎙️ listening …":"…");return r`<li class="waiting">
    <span class="dim" aria-hidden="true">${t}</span>
    <${h} class="waiting-words" of=${n} />
    <span class="dim small">${e.state==="transcribing"?"is transcribed":e.busy??"waits"}</span>
    ${m("talk")&&r`<${f} icon="close" label="Take this message back" onClick=${()=>_s(s,e.id)} />`}
  </li>`}function lo({item:t,onPutBack:e}){let s=t.clip?`🎙️ ${t.clip.name}`:u(t.text)||"🎙️";if(t.state==="refused")return r`<li class="waiting refused" role="alert">
      <div>
        <${h} class="waiting-words" of=${s} />
        <p class="fault small">Not taken: ${t.fault}. ${pt(t.hint)}</p>
      </div>
      <span class="waiting-tools">
        <button type="button" class="quiet" onClick=${()=>w.again(t.key)}>Send again</button>
        ${!t.clip&&r`<button type="button" class="quiet" onClick=${()=>e(t)}>Edit</button>`}
        <${f} icon="close" label="Discard" onClick=${()=>w.remove(t.key)} />
      </span>
    </li>`;let n=t.state==="accepted"?"accepted":U.value?"sending":"kept, is sent when the service is back";return r`<li class="waiting">
    <span class="dim" aria-hidden="true">↑</span>
    <${h} class="waiting-words" of=${s} />
    <span class="dim small">${n}</span>
    ${!U.value&&t.state==="sending"&&r`<${f} icon="close" label="Do not send this" onClick=${()=>w.remove(t.key)} />`}
  </li>`}import{MarkdownAttr as gt,MarkdownToken as p,markdownEnd as co,markdownParser as uo,markdownWrite as ho}from"./vendor.js";var po=500,fo=3e5,mo=1e4,$o=4e3,dn=512,go=16,wo={[p.Blockquote]:"blockquote",[p.Paragraph]:"p",[p.Line_Break]:"br",[p.Rule]:"hr",[p.Italic_Ast]:"em",[p.Italic_Und]:"em",[p.Strong_Ast]:"strong",[p.Strong_Und]:"strong",[p.Strike]:"s",[p.Code_Inline]:"code",[p.Raw_URL]:"a",[p.Link]:"a",[p.Image]:"a",[p.List_Unordered]:"ul",[p.List_Ordered]:"ol",[p.List_Item]:"li",[p.Table_Row]:"tr",[p.Equation_Block]:"code",[p.Equation_Inline]:"code"},hn=[p.Heading_1,p.Heading_2,p.Heading_3,p.Heading_4,p.Heading_5,p.Heading_6],_o=new Set(["p","h3","h4","h5","h6","li","blockquote"]),pn=2,jt=class{constructor(e){this._root=e,this._pieces=new yt,this._parsed=0,this._line=0,this._plain=null,this._parser=uo(yo(e))}write(e){this._write(this._pieces.take(e))}end(){this._write(this._pieces.end()),this._plain||co(this._parser)}_write(e){for(let s=0;s<e.length;s+=dn){let n=e.slice(s,s+dn);if(this._plain){this._writePlain(n);continue}ho(this._parser,n),this._parsed+=n.length;let i=n.lastIndexOf(`
`);this._line=i<0?this._line+n.length:n.length-i,(this._parsed>fo||this._line>mo||this._parser.pending.length>po)&&this._writePlain(this._parser.pending)}}_writePlain(e){(!this._plain||this._plain.textContent.length>$o)&&(this._plain=this._root.appendChild(R("p","plain"))),this._plain.append(e)}};function yo(t){return{data:{nodes:[t],level:pn},add_token:bo,end_token:So,add_text:xo,set_attr:Eo}}function bo(t,e){let s=t.nodes.at(-1);if(t.nodes.length>go){t.nodes.push(s);return}let n=vo(e,s,t);s.append(n),t.nodes.push(n.querySelector(":scope > pre > code, :scope > table")??n)}function vo(t,e,s){switch(t){case p.Code_Block:case p.Code_Fence:return To();case p.Table:return Co();case p.Table_Cell:return R(e.previousSibling?"td":"th");case p.Checkbox:return R("span","checkbox");case p.Image:return R("a","image")}let n=wo[t]??(hn.includes(t)?ko(t,s):"span"),i=R(n);return _o.has(n)&&(i.dir="auto"),i}function ko(t,e){return e.level=Math.min(hn.indexOf(t)+1+pn,e.level+1,6),`h${e.level}`}function So(t){t.nodes.pop()}function xo(t,e){t.nodes.at(-1).append(e)}function Eo(t,e,s){let n=t.nodes.at(-1);if(e===gt.Href||e===gt.Src)Mo(n,s);else if(e===gt.Lang){let i=n.closest?.(".code")?.querySelector(".code-language");i&&(i.textContent=s.slice(0,40))}else e===gt.Checked?n.classList.add("checked"):e===gt.Start&&(n.start=Number.parseInt(s,10)||1)}function Mo(t,e){let s=Fe(e);if(!s){t.textContent!==e&&t.append(` (${e})`);return}Object.assign(t,{href:s,target:"_blank",rel:"noopener noreferrer nofollow",title:s})}function To(){let t=R("div","code"),e=t.appendChild(R("div","code-bar"));e.appendChild(R("span","code-language"));let s=e.appendChild(R("button","code-copy"));s.type="button",s.textContent="Copy";let n=t.appendChild(R("pre"));return n.tabIndex=0,n.dir="ltr",n.appendChild(R("code")),t}function Co(){let t=R("div","table");return t.tabIndex=0,t.setAttribute("role","region"),t.setAttribute("aria-label","table"),t.appendChild(R("table")),t}function R(t,e=""){let s=document.createElement(t);return e&&(s.className=e),s}import{effect as Ao,useLayoutEffect as fn,useRef as mn}from"./vendor.js";var qo=8192,No=8,Oo=1500;function qe({text:t,isWhole:e,growing:s=null}){let n=mn(null),i=mn(null);return fn(()=>{if(i.current??=new Ae(n.current),s)return Ao(()=>i.current.set(s(),!1));i.current.set(t,e)},[t,e,s===null]),fn(()=>()=>i.current?.stop(),[]),r`<div class="words" ref=${n} onClick=${Ro}></div>`}var Ae=class{constructor(e){this._frame=e,this._timer=0,this._begin("")}set(e,s){if(this._isEnded||e.length<this._written){if(this._isEnded&&e===this._text)return;this._begin(e)}this._text=e,this._isWhole=s,this._go()}stop(){clearTimeout(this._timer)}_begin(e){this.stop(),this._frame.replaceChildren(),this._writer=new jt(this._frame),this._text=e,this._written=0,this._isEnded=!1}_go(){this.stop();let e=performance.now()+No;for(;this._written<this._text.length;){let s=this._text.slice(this._written,this._written+qo);if(this._writer.write(s),this._written+=s.length,performance.now()>e&&this._written<this._text.length){this._timer=setTimeout(()=>this._go());return}}this._isWhole&&!this._isEnded&&(this._isEnded=!0,this._writer.end())}};async function Ro(t){let e=t.target.closest(".code-copy");if(!e)return;let s=e.closest(".code").querySelector("code"),n=await Wt(s.textContent);n||getSelection().selectAllChildren(s),e.textContent=n?"Copied":"Selected",setTimeout(()=>e.textContent="Copy",Oo)}import{useState as Io}from"./vendor.js";function gn({question:t}){return r`<div class=${`question ${t.state}`} role="group" aria-label="Question">
    <${Ne} question=${t} />
    ${t.state==="open"&&m("talk")&&r`<${Oe} question=${t} />`}
    ${t.state==="answered"&&r`<p class="question-answer"><span aria-hidden="true">❯ </span><${h} of=${t.answer} />
          ${" "}<span class="dim small">by ${t.by}</span></p>`}
    ${t.state==="withdrawn"&&r`<p class="dim small">withdrawn with its turn</p>`}
  </div>`}function Ne({question:t}){let[e,...s]=wt(t)?t.text.split(`
`):[t.text];return r`<${h} tag="div" class="question-text" of=${e} />
    ${s.length>0&&r`<${h} tag="pre" class="question-call" of=${s.join(`
`)} />`}`}function Oe({question:t}){let[e,s]=Io(!1),n=t.choices?.length?t.choices:wt(t)?["yes","no"]:[],i=async o=>{s(!0),await Dt(t,o)||s(!1)};return r`<div class="choices">
    ${n.map(o=>r`<button
        key=${o}
        type="button"
        class=${wt(t)&&o==="no"?"choice deny":"choice"}
        disabled=${e}
        onClick=${()=>i(o)}
      >
        <${h} of=${$n[o]&&wt(t)?$n[o]:o} />
      </button>`)}
    ${!wt(t)&&r`<span class="dim small">or answer in your own words</span>`}
  </div>`}var wt=t=>(t.asks??t.kind)==="approve",$n={yes:"Approve",no:"Deny",always:"Always in this turn"};import{useEffect as Lo,useState as Re}from"./vendor.js";var Bo={running:"·",ok:"✔",failed:"✘",cut:"■"},Do={running:"is running",ok:"finished",failed:"failed",cut:"was stopped"},Po=2e4;function Ie({tool:t,turn:e}){let[s,n]=Re(!1),i=[t.ended,`${Y(t.ms)} ms`].filter(Boolean).join(" · "),o={running:"",cut:"stopped"}[t.state]??i;return r`<div class=${`tool ${t.state}`}>
    <button type="button" class="tool-line" aria-expanded=${s} onClick=${()=>n(!s)}>
      <span class="tool-sign" aria-hidden="true">${Bo[t.state]}</span>
      <span class="tool-name">${D(t.name)}</span>
      <span class="unseen">${Do[t.state]}</span>
      <span class="tool-summary" dir="auto">${xt(t.summary)}</span>
      <span class="tool-facts">${o}</span>
      <${O} name="fold" />
    </button>
    ${t.state==="running"&&t.note&&!s&&r`<pre class="tool-note">${D(t.note)}</pre>`}
    ${s&&r`<${Wo} tool=${t} turn=${e} state=${t.state} />`}
  </div>`}function Wo({tool:t,turn:e,state:s}){let[n,i]=Re(null);Lo(()=>{if(t.arguments!==void 0)return i(t);let l=!0;return $(async()=>{let{attempts:c}=await Es(e,t.call);l&&i(c.find(d=>d.attempt===t.attempt)??c[0])}),()=>l=!1},[s]);let o=Xe(n?.arguments??t.summary),a=n?.result??t.note;return r`<div class="tool-details">
    <dl>
      ${o.map(([l,c])=>r`<div key=${l}><dt>${D(l)||"arguments"}</dt><dd><pre tabindex="0">${D(c)}</pre></dd></div>`)}
    </dl>
    <${Uo} text=${a} isRunning=${s==="running"} isRead=${!!n} />
  </div>`}function Uo({text:t,isRunning:e,isRead:s}){let[n,i]=Re(!1);if(!t)return r`<p class="dim small">${e?"no output yet":s?"no output":"reading …"}</p>`;let o=n?t:t.slice(0,Po);return r`<div class="tool-result">
    <p class="dim small">${e?"last output":"result"}</p>
    <pre tabindex="0" dir="auto">${D(o)}</pre>
    ${o.length<t.length&&r`<button type="button" class="quiet"
          onClick=${()=>i(!0)}>Show all ${Y(t.length)} characters</button>`}
  </div>`}import{useEffect as Ho,useState as jo}from"./vendor.js";function wn({conversation:t,turn:e,onEdit:s,onWhy:n}){let i=t.version(e.id).value,{messages:o}=t.log,a=l=>s(e,l);return r`<article class=${`turn ${e.state}`} aria-label=${`Turn ${e.number}`} data-turn=${e.id}>
    <h2 class="unseen">Turn ${e.number}</h2>
    ${e.messages.map(l=>r`<${Me} key=${l} message=${o.get(l)} version=${i} onEdit=${a} onWhy=${n} />`)}
    <div class="answer">
      ${e.pieces().map(({key:l,text:c,mark:d,isLast:y})=>d?r`<${Fo} key=${l} mark=${d} version=${i} turn=${e.id} messages=${o} onWhy=${n} />`:r`<${Vo} key=${l} text=${c} conversation=${t} turn=${e} version=${i} isLast=${y} />`)}
      ${e.lost&&r`<p class="lost">⟳ attempt ${e.attempt} was lost: <${h} of=${u(e.lost)} />; it goes on from here</p>`}
      ${e.stuck&&r`<p class="lost">■ it <${h} of=${u(e.stuck)} /></p>`}
      ${e.isOpen?e.state!=="asking"&&r`<${Xo} turn=${e} conversation=${t} version=${i} />`:r`<${zo} turn=${e}
          version=${i} onWhy=${n} />`}
    </div>
  </article>`}function Vo({text:t,conversation:e,turn:s,isLast:n}){let i=()=>(e.tailVersion(s.id).value,s.tail);return r`<${qe} text=${t} isWhole=${!s.isOpen} growing=${n&&s.isOpen?i:null} />`}function Fo({mark:t,version:e,turn:s,messages:n,onWhy:i}){return t.kind==="tool"?r`<${Ie} tool=${t} version=${e} turn=${s} />`:t.kind==="question"?r`<${gn} question=${t} version=${e} />`:r`<${Me} message=${n.get(t.message)} version=${e} onWhy=${i} />`}function Xo({turn:t,conversation:e}){let[s,n]=jo(Date.now());Ho(()=>{let o=setInterval(()=>n(Date.now()),1e3);return()=>clearInterval(o)},[]);let i=t.openedAt?Math.max(0,Math.floor(s/1e3-t.openedAt)):0;return r`<p class="life">
    <span class="pulse" aria-hidden="true"></span>
    <span>${A(i)} · <${h} of=${Ko(t,e)} /></span>
    ${U.value&&m("talk")&&r`<span class="life-hint">Esc interrupts</span>`}
  </p>`}function Ko(t,e){if(!U.value)return"goes on when the supervisor is back";if(e.interrupting.value===t.id)return"interrupting";if(t.state==="queued")return"accepted, waits for a worker";let s=t.runningTools;return s.length>1?`${s.length} tools are running`:t.note?u(t.note).slice(0,200):s.length?`${u(s[0].name)} is running`:"answering"}function zo({turn:t,onWhy:e}){let s=r`<${f} icon="why" label="Why: the history of this turn" onClick=${()=>e(t.id)} />`,n=r`<${f} icon="copy" label="Copy the answer" onClick=${()=>Wt(t.text)} />`,i=m("talk")&&r`<button type="button" class="quiet" onClick=${()=>vs(t.id)}>Retry</button>`;if(t.state==="done"){let o=St(t.ending);return r`${o&&r`<p class="remark">! ${o}</p>`}
      <p class="ending"><span>${Ge(t)}</span><span class="ending-tools">${n}${s}</span></p>`}return t.state==="interrupted"?r`<p class="ending cut">
      <span><span aria-hidden="true">■ </span>cut off ${z(t.endedAt)} · ${j(t.ending)}</span>
      <span class="ending-tools">${i}${s}</span>
    </p>`:r`<div class="ending fault">
    <div>
      <p><span aria-hidden="true">✘ </span>failed ${z(t.endedAt)} · <${h} of=${u(t.ending.error??"")} /></p>
      ${t.ending.hint&&r`<p class="dim small">hint: <${h} of=${u(t.ending.hint)} /></p>`}
    </div>
    <span class="ending-tools">${i}${s}</span>
  </div>`}function _n({row:t}){return r`<article class="turn past" aria-label="Earlier turn">
    ${t.messages.map((e,s)=>r`<div class="you" key=${s}><div class="bubble"><${Te} text=${e.text} /></div></div>`)}
    <div class="answer">
      ${(t.tools??[]).map(e=>r`<${Ie} key=${`${e.attempt} ${e.call}`} tool=${Qo(e)} turn="" />`)}
      <${qe} text=${t.text} isWhole=${!0} />
    </div>
  </article>`}var Qo=t=>({...t,summary:t.arguments,state:t.ok?"ok":"failed",ms:0,ended:"",note:""});import{useEffect as Be,useLayoutEffect as vn,useRef as Le,useState as Vt}from"./vendor.js";var yn=40,Go=80;function kn({session:t,onMenu:e,onWhy:s}){let n=It(t),[i,o]=Vt(null),[a,l]=Vt(!1);return Be(()=>o(null),[t]),r`<main class="talk" onDragOver=${b=>{!b.dataTransfer?.types.includes("Files")||!m("talk")||(b.preventDefault(),l(!0))}} onDragLeave=${()=>l(!1)} onDrop=${b=>{b.preventDefault(),l(!1),rn(n,b.dataTransfer.files)}}>
    <${Jo} conversation=${n} onMenu=${e} />
    <${Zo} key=${t} conversation=${n} onEdit=${(b,X)=>{o({turn:b,message:X}),et(t,X.text)}} onWhy=${s} />
    <div class="bottom">
      <${un} conversation=${n} onPutBack=${b=>{et(t,[$t(t).value,b.text].filter(Boolean).join(`
`)),w.remove(b.key)}} />
      <${on} conversation=${n} editing=${i} onEditing=${o} />
    </div>
    ${a&&r`<div class="dropping" aria-hidden="true">Drop a sound file: it is sent, and its words are shown</div>`}
  </main>`}function Jo({conversation:t,onMenu:e}){t.shape.value;let{session:s,log:n}=t,i=$e(s),o=n.openTurn;return r`<header class="head">
    <${f} icon="menu" class="menu" label="Sessions" onClick=${e} />
    <div class="head-title">
      <h1><${h} of=${s} /></h1>
      <p class="small dim">${Yo(n)}</p>
    </div>
    ${i.length>1&&r`<label class="branches">
      <${O} name="branch" />
      <span class="unseen">Branch</span>
      <select value=${s} onChange=${a=>V("talk",a.target.value)}>
        ${i.map(a=>r`<option key=${a} value=${a}>${a===ft(s)?`${a} (first)`:a}</option>`)}
      </select>
    </label>`}
    ${o&&m("talk")&&r`<button type="button" class="stop-button" onClick=${()=>lt(t)}><${O} name="stop" /> Stop</button>`}
  </header>`}function Yo({openTurn:t,isHeld:e,lastTurn:s}){return t?{queued:"queued",asking:"asks you"}[t.state]??"running":e?"held":s?.agent??""}function Zo({conversation:t,onEdit:e,onWhy:s}){let n=t.shape.value,{log:i}=t,[o,a]=Vt(yn),l=Le(null),c=ir(l,t);nr(t);let d=w.of(t.session).length,y=Le(0);Be(()=>{d>y.current&&c.toEnd(),y.current=d},[d]);let I=i.items.slice(-o),b=i.items.length>I.length||t.hasEarlier,X=async()=>{let st=l.current.scrollHeight-l.current.scrollTop;i.items.length<=o&&await t.readEarlier().catch(()=>{}),a(o+yn),requestAnimationFrame(()=>l.current.scrollTop=l.current.scrollHeight-st)},ht=b?[]:t.past.value,T=!I.length&&!ht.length,G=`scroll ${c.value?"following":""}`;return r`<div class=${G} ref=${l} tabindex="0" role="region" aria-label="Conversation">
    <div class="column">
      ${b&&r`<button type="button" class="quiet wide" disabled=${t.isReadingEarlier.value}
          onClick=${X}>⋯ what was said earlier</button>`}
      ${ht.map((st,qn)=>r`<${_n} key=${`past ${qn}`} row=${st} />`)}
      ${!b&&i.begun?.from&&r`<p class="divider">
          <a href=${`#/talk/${encodeURIComponent(i.begun.from)}`}>${tr(i.begun)}</a>
        </p>`}
      ${T&&r`<${sr} conversation=${t} />`}
      ${I.map(st=>r`<${er} key=${st.id} item=${st} version=${n} conversation=${t} onEdit=${e} onWhy=${s} />`)}
    </div>
    <div class="end"></div>
    ${!c.value&&r`<button type="button" class="to-end" onClick=${c.toEnd}><${O} name="down" /> newest</button>`}
  </div>`}function tr({from:t,through:e}){return`branched from ${t}, ${e?`after turn ${e}`:"at its beginning"}`}function er({item:t,version:e,conversation:s,onEdit:n,onWhy:i}){return t instanceof P?r`<${wn} conversation=${s} turn=${t} shape=${e} onEdit=${n} onWhy=${i} />`:t.gap!==void 0?r`<p class="aside dim">⋯ the journal was repaired; ${t.gap} events are missing</p>`:r`<${cn} message=${t} version=${e} onWhy=${i} />`}function sr({conversation:t}){let e=t.state.value;return e!=="new"?r`<div class="greeting dim">${e==="following"?"":"reading …"}</div>`:r`<div class="greeting">
    <h2><${h} of=${t.session} /> is new</h2>
    <p class="dim">
      Say something. It is answered by a process of its own, which you can stop at any moment, with a proof that nothing of it
      is left.
    </p>
  </div>`}function nr(t){let e=()=>{document.hidden||gs(t.session,t.log.seq)};vn(e),Be(()=>(document.addEventListener("visibilitychange",e),()=>document.removeEventListener("visibilitychange",e)),[t])}function ir(t,e){let[s,n]=Vt(!0),i=Le(!0),o=()=>{i.current=!0,n(!0),t.current.scrollTop=t.current.scrollHeight};return vn(()=>{let a=t.current,l=()=>{i.current=bn(a)<Go,n(i.current)},c=new ResizeObserver(()=>{i.current&&bn(a)>=1&&(a.scrollTop=a.scrollHeight)});return c.observe(a.firstElementChild),c.observe(a),a.addEventListener("scroll",l,{passive:!0}),a.scrollTop=a.scrollHeight,()=>{c.disconnect(),a.removeEventListener("scroll",l)}},[e]),{value:s,toEnd:o}}var bn=({scrollHeight:t,scrollTop:e,clientHeight:s})=>t-e-s;import{effect as Lr,render as Br,useEffect as Dr,useState as Pe}from"./vendor.js";var Ft=class{constructor(){this._asked=null,this._frames=0,this._open=0}shown(e){return this._asked??e}ask(e,s){return this._asked=Math.max(1,this.shown(e)+s),this._open+=1,this._asked}answered(e){this._open-=1,this._frames=2,!e&&this._open===0&&(this._asked=null)}take(e){this._open>0||this._asked===null||(this._frames-=1,(e===this._asked||this._frames<=0)&&(this._asked=null))}};import{useEffect as Sn,useState as Xt}from"./vendor.js";var or=["","running","queued","asking","done","interrupted","failed","poison"],rr=30,ar=3e3,lr={process:15,loop:15,progress:120};function xn({onMenu:t,onWhy:e}){let s=oe.value;return r`<main class="watch">
    <header class="head">
      <${f} icon="menu" class="menu" label="Sessions" onClick=${t} />
      <div class="head-title"><h1>Watch</h1><p class="small dim">${s?cr(s.status):"reading …"}</p></div>
      ${s&&r`<${dr} status=${s.status} />`}
    </header>
    <div class="scroll" tabindex="0" role="region" aria-label="The service">
      <div class="wide-column">
        ${s&&r`<${ur} status=${s.status} /><${hr} status=${s.status} workers=${s.workers} />`}
        <${pr} />
        ${s&&r`<${fr} workers=${s.workers} /><${wr} services=${s.services} />`}
        <${_r} onWhy=${e} />
      </div>
    </div>
  </main>`}function cr({state:t,version:e,uptime_seconds:s,model:n}){return`${t} · version ${e} · up ${A(s)} · ${u(n)}`}function ur({status:t}){return(t.hints??[]).map(e=>r`<p class="hint" key=${e}>! <${h} of=${u(e)} /></p>`)}function dr({status:t}){let[e]=Xt(()=>new Ft),[,s]=Xt(0);Sn(()=>{e.take(t.seats),s(o=>o+1)},[t]);let n=e.shown(t.seats),i=async o=>{let a=qs(e.ask(t.seats,o));s(l=>l+1),e.answered(await a!==void 0),s(l=>l+1)};return r`<div class="controls">
    <span class="stepper" role="group" aria-label="Seats">
      <button type="button" aria-label="One seat less" disabled=${n<=1} onClick=${()=>i(-1)}>−</button>
      <span>${n} seats</span>
      <button type="button" aria-label="One seat more" onClick=${()=>i(1)}>+</button>
    </span>
    ${t.draining?r`<button type="button" class="quiet strong" onClick=${As}>Undrain</button>`:r`<button type="button" class="quiet" title="Start no turn from now on; what runs is finished"
              onClick=${Cs}>Drain</button>`}
  </div>`}function hr({status:t,workers:e}){let s=e.reduce((i,o)=>i+(o.memory_bytes??0),0),n=e.reduce((i,o)=>i+(o.cpu_percent??0),0);return r`<section class="numbers" aria-label="Numbers">
    <${ut} name="busy" label="busy seats" value=${`${t.busy} of ${t.seats}`} />
    <${ut} name="waiting" label="queued and waiting" value=${t.queued+t.waiting} />
    <${ut} name="ended" label="turns ended" value=${Y(t.turns_ended)} />
    <${ut} name="cpu" label="CPU of workers" value=${`${n.toFixed(0)} %`} />
    <${ut} name="memory" label="memory of workers" value=${Jt(s)} />
    <${ut} name="lag" label="lag of the loop" value=${`${(t.lag_ms??0).toFixed(1)} ms`} />
  </section>`}function ut({name:t,label:e,value:s}){return r`<div class="number">
    <span class="number-value">${s}</span>
    <span class="small dim">${e}</span>
    <svg class="spark" viewBox="0 0 120 28" preserveAspectRatio="none" aria-hidden="true">
      <polyline points=${ls(re.of(t),120,28)} />
    </svg>
  </div>`}function pr(){let t=F.value;return t.length?r`<section aria-label="Questions">
    <h2>Questions</h2>
    <ul class="cards">
      ${t.map(e=>r`<li class="question open" key=${e.question}>
          <p class="small dim"><a href=${`#/talk/${encodeURIComponent(e.session)}`}>${e.session}</a> · asked ${z(e.at)}</p>
          <${Ne} question=${e} />
          ${m("talk")&&r`<${Oe} question=${e} />`}
        </li>`)}
    </ul>
  </section>`:null}function fr({workers:t}){return r`<section aria-label="Seats">
    <h2>Seats</h2>
    <ul class="seats">
      ${t.map(e=>r`<${mr} key=${e.seat} worker=${e} />`)}
    </ul>
  </section>`}function mr({worker:t}){let e=[t.pid&&`pid ${t.pid}`,t.memory_bytes!==null&&Jt(t.memory_bytes),t.cpu_percent!==null&&`${t.cpu_percent?.toFixed(0)} % CPU`,t.processes>1&&`${t.processes} processes`].filter(Boolean);return r`<li class=${`seat ${t.state}`}>
    <div class="seat-head">
      <span class="seat-number">${t.seat}</span>
      <span class=${`state ${t.state}`}>${t.state}</span>
      <span class="seat-session">${t.session&&r`<a href=${`#/talk/${encodeURIComponent(t.session)}`}><${h} of=${t.turn??t.session} /></a>`}</span>
      ${t.turn&&m("talk")&&r`<button type="button" class="quiet stop-text" onClick=${()=>gr(t)}><${O} name="stop" /> Stop</button>`}
    </div>
    <div class="signs">
      ${["process","loop","progress"].map(s=>r`<${$r} key=${s} name=${s} seconds=${t[s]} />`)}
    </div>
    <p class="small dim">${e.join(" · ")}${e.length?" · ":""}${A(Math.floor(t.age_seconds))} old</p>
    ${t.words&&r`<p class="small"><${h} of=${u(t.words)} /></p>`}
  </li>`}function $r({name:t,seconds:e}){let s=typeof e=="number",n=s?e>lr[t]?"late":"fresh":"none",i=s?`${t} ${A(Math.round(e))}`:`${t} –`;return r`<span class=${`sign ${n}`} title=${`the last sign of its ${t}`}>${i}</span>`}async function gr({session:t,turn:e}){let s=await $(()=>v(`${S(t)}/interrupt`,{json:{expect_turn:e}}));s?.turn&&E(`${s.turn} interrupted: ${j(s)}`,"","plain")}function wr({services:t}){return t.length?r`<section aria-label="Services">
    <h2>Services</h2>
    <ul class="services">
      ${t.map(e=>r`<li key=${e.service}>
          <span class=${`state ${e.state}`}>${e.state}</span>
          <strong>${e.service}</strong>
          <${h} class="dim small" of=${u([e.detail,e.address].filter(Boolean).join(" · "))} />
          <span class="dim small">
            ${[e.pid&&`pid ${e.pid}`,e.restarts&&J(e.restarts,"restart")].filter(Boolean).join(" · ")}
          </span>
          ${e.hint&&r`<span class="small">! <${h} of=${u(e.hint)} /></span>`}
        </li>`)}
    </ul>
  </section>`:null}function _r({onWhy:t}){let[e,s]=Xt(""),[n,i]=Xt(null);return Sn(()=>{let o=!0,a=()=>$(async()=>{if(document.hidden)return;let c=await C(`/api/turns?limit=${rr}${e?`&state=${e}`:""}`);o&&i(c.turns)});a();let l=setInterval(a,ar);return()=>{o=!1,clearInterval(l)}},[e]),r`<section aria-label="Turns">
    <div class="section-head">
      <h2>Turns</h2>
      <label class="small dim">
        state${" "}
        <select value=${e} onChange=${o=>s(o.target.value)}>
          ${or.map(o=>r`<option key=${o} value=${o}>${o||"all"}</option>`)}
        </select>
      </label>
    </div>
    ${n&&!n.length&&r`<p class="dim">none</p>`}
    <ul class="turns">
      ${(n??[]).map(o=>r`<li key=${o.turn}>
          <button type="button" class="turn-row" onClick=${()=>t(o.turn)}>
            <span class=${`state ${o.state}`}>${o.state}</span>
            <${h} class="turn-name" of=${o.turn} />
            <span class="dim small">${yr(o)}</span>
            <${O} name="why" />
          </button>
        </li>`)}
    </ul>
  </section>`}function yr(t){let e=t.opened_at??t.at,s=t.ended_at;return[e&&z(e),e&&s&&A(s-e),t.attempts>1&&`${t.attempts} attempts`,t.pid&&`worker ${t.worker}`].filter(Boolean).join(" · ")}var br=160;function En([t,...e]){return[...e.map(n=>({at:ze(n.at),words:u((Sr[n.type]??kr)(n))})),{at:"",words:u(vr(t))}]}function vr(t){let e=t.waits?`: ${t.waits}`:"";if(t.kind==="turn"){let s=t.attempts>1?` after ${t.attempts} attempts`:"";return`turn ${t.id} is ${t.state}${s}${e}`}return t.turn?`message ${t.id} was taken by turn ${t.turn}, which is ${t.turn_state}${e}`:`message ${t.id} is ${t.state}${e}`}var dt=t=>t?`: ${K(u(t),br)}`:"";function kr({type:t,seq:e,session:s,at:n,...i}){let o=Object.entries(i).map(([a,l])=>`${a}=${K(u(JSON.stringify(l)),40)}`);return`${t} ${o.join(" ")}`}var Sr={"session.begun":t=>`the session began with ${J(t.turns,"turn")}${t.from?` of ${t.from}`:""}`,"message.accepted":t=>`message ${t.message} arrived (${t.kind}, ${t.busy})${dt(t.text)}`,"message.dropped":t=>`message ${t.message} was dropped by ${t.by}`,"transcript.ready":t=>`message ${t.message} was understood${dt(t.text)}`,"transcript.failed":t=>`message ${t.message} could not be understood: ${t.reason}`,"turn.opened":t=>`turn ${t.turn} opened to answer ${t.messages.join(", ")}${t.agent?` by agent ${t.agent}`:""}`,"turn.joined":t=>`before it began, turn ${t.turn} took in ${t.messages.join(", ")} as well`,"attempt.opened":t=>`attempt ${t.attempt} began on worker ${t.worker} (pid ${t.pid}${t.level?`, sandbox level ${t.level}`:""})`,"attempt.stuck":t=>`attempt ${t.attempt} ${vt(t)}`,"attempt.lost":t=>`attempt ${t.attempt} was lost: ${t.reason}`,"tool.started":t=>`tool ${t.name} started${dt(xt(t.summary))}`,"tool.finished":t=>{let e=kt(t);return`tool ${t.name} ${t.ok?"finished":"failed"}${e?` (${e})`:""} after ${t.ms} ms`},"question.asked":t=>`it asked a question (${t.question})${dt(t.text)}`,"question.answered":t=>`the question ${t.question} was answered${dt(t.text)}`,"turn.steered":t=>`the running agent took in message ${t.message}`,"turn.done":t=>{let e=St(t),s=J(t.usage?.output_tokens??0,"token");return`turn ${t.turn} was answered${t.model?` by ${t.model}`:""} (${s}${e?`; ${e}`:""})${dt(t.text)}`},"turn.interrupted":t=>`turn ${t.turn} was interrupted by ${t.by}, ${j(t)}`,"turn.failed":t=>`turn ${t.turn} failed: ${t.error} (hint: ${t.hint})`};var De=new Set(["turn.done","turn.failed","turn.interrupted"]);function Tn(t,e){let s=t.filter(l=>l.type&&l.at);if(!s.length)return{begin:e,end:e,spans:[]};let n=s[0].at,o=s.findLast(l=>De.has(l.type))?.at??Math.max(e,s.at(-1).at),a=[...xr(s,o),...Tr(s,o),...Cr(s,o)];return{begin:n,end:o,spans:[...a,...Ar(a,o)]}}function xr(t,e){let s=[],n=null,i="waiting",o=a=>{n!==null&&a>n&&s.push({lane:"waiting",kind:i,label:Mr[i],begin:n,end:a}),n=null};for(let{type:a,at:l}of t)a==="attempt.opened"||De.has(a)?o(l):a==="question.asked"?(o(l),[n,i]=[l,"asking"]):n===null&&Er.has(a)?[n,i]=[l,"waiting"]:a==="question.answered"&&(o(l),[n,i]=[l,"waiting"]);return n!==null&&o(e),s}var Er=new Set(["message.accepted","turn.opened","attempt.lost"]),Mr={waiting:"waits for a worker",asking:"waits for an answer"};function Tr(t,e){let s=[],n=null;for(let i of t)i.type==="attempt.opened"?(n&&(n.end=i.at),n={lane:"attempts",kind:"attempt",label:`attempt ${i.attempt}, worker ${i.worker}`,begin:i.at,end:e},s.push(n)):n&&(i.type==="attempt.lost"||De.has(i.type)||i.type==="question.asked"&&!i.holds)&&(n.end=i.at,i.type==="attempt.lost"&&(n.kind="lost"),n=null);return s}function Cr(t,e){let s=new Map,n=[];for(let i of t)if(i.type==="tool.started"){let o={lane:"tools",kind:"tool",label:i.name,begin:i.at,end:e};s.set(i.call,o),n.push(o)}else if(i.type==="tool.finished"&&s.has(i.call))Object.assign(s.get(i.call),{end:i.at,kind:i.ok?"tool":"failed"}),s.delete(i.call);else if(i.type==="attempt.lost"||i.type==="question.asked"){for(let o of s.values())Object.assign(o,{end:i.at,kind:"cut"});s.clear()}return n}function Ar(t,e){let s=t.filter(i=>i.lane==="tools").sort((i,o)=>i.begin-o.begin),n=[];for(let i of t.filter(o=>o.lane==="attempts")){let o=i.begin;for(let a of s)a.begin>=i.end||a.end<=o||(a.begin>o&&n.push(Mn(o,a.begin)),o=Math.max(o,a.end));i.end>o&&n.push(Mn(o,Math.min(i.end,e)))}return n}var Mn=(t,e)=>({lane:"words",kind:"words",label:"model",begin:t,end:e});import{useEffect as qr,useState as Nr}from"./vendor.js";var Or=["waiting","attempts","tools","words"];function Cn({id:t,onClose:e}){let[s,n]=Nr(null);return qr(()=>{$(async()=>n((await(t.includes("/")?Ss(t):xs(t))).rows)).then(i=>i)},[t]),r`<${Pt} title=${`Why: ${t}`} class="why" onClose=${e}>
    ${s?r`<${Rr} events=${s.slice(1)} />
          <ol class="story">
            ${En(s).map(({at:i,words:o},a)=>r`<li key=${a}><time>${i}</time><${h} of=${o} /></li>`)}
          </ol>`:r`<p class="dim">reading …</p>`}
  <//>`}function Rr({events:t}){let{begin:e,end:s,spans:n}=Tn(t,Date.now()/1e3),i=Math.max(s-e,.001),o=a=>(a-e)/i*100;return r`<figure class="timeline">
    ${Or.map(a=>{let l=n.filter(c=>c.lane===a);return r`<div class="lane" key=${a}>
        <span class="lane-name small dim">${a}</span>
        <span class="lane-track">
          ${l.map((c,d)=>r`<span
              key=${d}
              class=${`span ${c.kind}`}
              style=${{insetInlineStart:`${o(c.begin)}%`,width:`max(2px, ${o(c.end)-o(c.begin)}%)`}}
              title=${`${c.label} · ${A(c.end-c.begin)}`}
            ></span>`)}
        </span>
        <span class="lane-sum small">${l.length?Ir(l):""}</span>
      </div>`})}
    <figcaption class="small dim">${A(i)} from the first step to the last</figcaption>
  </figure>`}function Ir(t){let e=t.reduce((s,n)=>s+n.end-n.begin,0);return e<1?`${Math.round(e*1e3)} ms`:A(e<10?Math.round(e*10)/10+.001:e)}var Pr=2e3;function Wr(){return x.value===null?r`<main class="login"><p class="dim">connecting …</p></main>`:x.value?r`<${Ur} />`:r`<${Ls} /><${An} />`}function Ur(){let[t,e]=Pe(!1),[s,n]=Pe(null),[i,o]=Pe(!1),{view:a,session:l}=_.value;return Dr(()=>{let c=d=>Fr(d,{isSideOpen:t,setSideOpen:e,setHelp:o});return addEventListener("keydown",c),()=>removeEventListener("keydown",c)},[t]),r`<div class=${`app ${t?"side-open":""}`}>
    <a class="skip" href="#content" onClick=${Hr}>To the conversation</a>
    <aside class="side" aria-label="Sessions and settings">
      <${Ks} onChosen=${()=>e(!1)} onHelp=${()=>o(!0)} />
    </aside>
    <div class="shade" onClick=${()=>e(!1)}></div>
    <div class="content" id="content">
      <${Vr} />
      ${a==="watch"?r`<${xn} onMenu=${()=>e(!0)} onWhy=${n} />`:r`<${kn} session=${l} onMenu=${()=>e(!0)} onWhy=${n} />`}
    </div>
    <${An} />
    ${s&&r`<${Cn} id=${s} onClose=${()=>n(null)} />`}
    ${i&&r`<${Os} onClose=${()=>o(!1)} />`}
    <div class="unseen" role="status" aria-live="polite">${ae}</div>
  </div>`}function Hr(t){t.preventDefault(),document.querySelector(".content .scroll")?.focus()}var jr={away:"The gateway does not answer. What you see stays; what you write is kept and sent when it is back.",waiting:"The supervisor is away. What you see stays; what you write is kept and sent when it is back.",back:"Connected again. Nothing was lost."};function Vr(){let t=jr[N.value];return r`<div class=${`banner ${t?N.value:"none"}`} role="status">${t??""}</div>`}function An(){return r`<div class="toasts" role="region" aria-label="Notices">
    ${rt.value.map(({id:t,fault:e,hint:s,tone:n})=>r`<div key=${t} class=${`toast ${n}`} role=${n==="fault"?"alert":"status"}>
        <div><${h} tag="p" of=${u(e)} />${s&&r`<${h} tag="p" class="dim small" of=${u(s)} />`}</div>
        <${f} icon="close" label="Dismiss" onClick=${()=>fe(t)} />
      </div>`)}
  </div>`}function Fr(t,{isSideOpen:e,setSideOpen:s,setHelp:n}){if(t.defaultPrevented||document.querySelector("dialog[open]"))return;let i=/^(input|textarea|select)$/i.test(t.target.tagName);t.key==="Escape"?e?s(!1):!be()&&_.value.view==="talk"&&lt(It(_.value.session)):t.key==="k"&&(t.ctrlKey||t.metaKey)?(t.preventDefault(),s(!0),document.querySelector(".search input")?.focus()):t.altKey&&(t.key==="ArrowUp"||t.key==="ArrowDown")?(t.preventDefault(),Xr(t.key==="ArrowDown"?1:-1)):!i&&t.key==="?"?n(!0):!i&&t.key==="/"&&(t.preventDefault(),document.querySelector(".composer textarea")?.focus())}function Xr(t){let e=Bt.value.map(n=>n.session),s=e[e.indexOf(_.value.session)+t];s&&V("talk",s)}function Kr({session:t},e){if(_.value.view!=="talk"||t!==_.value.session||Date.now()/1e3-e.at>60)return;let s=zr[e.type]?.(e);s&&tt(u(s).slice(0,Pr))}var zr={"turn.done":({text:t})=>`Answer: ${t}`,"turn.failed":({error:t})=>`The turn failed: ${t}`,"turn.interrupted":()=>"The turn was interrupted","question.asked":({text:t,choices:e})=>`Question: ${t} ${(e??[]).join(", ")}`,"transcript.ready":({text:t})=>`You said: ${t}`,"transcript.failed":({reason:t})=>`Not understood: ${t}`};function Qr(){if(!navigator.serviceWorker||!window.isSecureContext)return;let t="/service-worker.js",e=window.trustedTypes?.createPolicy("service-worker",{createScriptURL:()=>t});navigator.serviceWorker.register(e?e.createScriptURL(t):t).catch(()=>{}),navigator.serviceWorker.ready.then(({active:s})=>{let i=performance.getEntriesByType("resource").map(({name:o})=>new URL(o).pathname).filter(o=>o.startsWith("/console/"));s.postMessage({shell:["/","/manifest.webmanifest",...new Set(i)]})}),navigator.serviceWorker.addEventListener("message",({data:s})=>s?.session&&V("talk",s.session))}le(js);le(Kr);Vs(t=>_.value.view==="talk"&&_.value.session===t);Lr(()=>{x.value&&hs(["sessions","questions",...x.value.rights.includes("operate")&&_.value.view==="watch"?["service"]:[]])});var Gr=Ye();document.querySelector("noscript")?.remove();Br(r`<${Wr} />`,document.getElementById("app"));ps(Gr);Qr();
