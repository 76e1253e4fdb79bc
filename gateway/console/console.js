// Made of the modules in gateway/console/modules by `make console`: see console.json.
var Ft={message:"the gateway does not answer",hint:"check that the service runs and that this device is online",code:"away"},g=class extends Error{constructor(e,{message:s,hint:n,code:i},o=0){super(s),this.status=e,this.hint=n??"",this.code=i??"",this.retrySeconds=o}get isPassing(){return this.status===0||this.status===429||this.status>=502}},Pe=()=>{};function We(t){Pe=t}async function Kt(t,e,{json:s,form:n,key:i,signal:o,isLogin:r=!1}={}){let l={};s!==void 0&&(l["Content-Type"]="application/json"),i&&(l["Idempotency-Key"]=i);let c;try{let y=n??(s===void 0?void 0:JSON.stringify(s));c=await fetch(e,{method:t,headers:l,body:y,signal:o,credentials:"same-origin",cache:"no-store"})}catch(y){throw y.name==="AbortError"?y:new g(0,Ft)}if(c.ok)return c.status===204?null:An(c);let d=await Ue(c);throw d.status===401&&!r&&Pe(d),d}var C=(t,e)=>Kt("GET",t,e),v=(t,e)=>Kt("POST",t,e),Xt=(t,e)=>Kt("DELETE",t,e);async function An(t){try{return await t.json()}catch{throw new g(0,Ft)}}async function Ue(t){let e=Number(t.headers.get("Retry-After"))||0;try{let{error:s}=await t.json();return new g(t.status,s,e)}catch{let s="something between this page and the gateway answered; reload the page";return new g(t.status,{message:`the answer was ${t.status}`,hint:s},e)}}var S=t=>`/api/sessions/${encodeURIComponent(t)}`;function _t(t){let e=t.lastIndexOf("/");return`/api/turns/${encodeURIComponent(t.slice(0,e))}/${t.slice(e+1)}`}async function He(t,e,s){let n=Math.max(0,e-1-s),i=new AbortController,o=[];try{let r=await fetch(`${S(t)}/events?after=${n}`,{signal:i.signal,cache:"no-store"});if(!r.ok)throw await Ue(r);for await(let l of qn(r.body))if(l.seq&&l.seq<e&&o.push(l),!l.seq||l.seq>=e-1)break;return o}catch(r){throw r instanceof g?r:new g(0,Ft)}finally{i.abort()}}async function*qn(t){let e=t.pipeThrough(new TextDecoderStream).getReader(),s="";for(;;){let{done:n,value:i}=await e.read();if(n)return;s+=i;let o=s.split(`

`);s=o.pop();for(let r of o){let l=r.split(`
`).find(c=>c.startsWith("data: "));l&&(yield JSON.parse(l.slice(6)))}}}var Nn=/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u206f\ufdd0-\ufdef\ufff0-\ufffb\ufffe\uffff]|\r(?!\n)/g,je=/\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{1,6}\u{e007f}/uy,On=/[\u{e0000}-\u{e007f}]/u,bt=/[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u2065\u3164\ufeff\uffa0]/,Rn=new RegExp(`${bt.source}|[\\u{e0000}-\\u{e007f}]`,"u"),In=new RegExp(`(?:${bt.source}|[\\ud800-\\udbff]|\\ud83c\\udff4(?:\\udb40[\\udc00-\\udfff])*|\\r){1,32}$`),Ln=/[\u061c\u200e\u200f]/,Bn=/[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc]/;function D(t,e=""){let s=String(t).replaceAll(`\r
`,`
`).replace(Nn,"�");return Rn.test(s)?Dn(s,e):s}var yt=class{constructor(){this._held="",this._before=""}take(e){let s=this._held+e,n=In.exec(s)?.index??s.length;return this._held=s.slice(n),this._shown(s.slice(0,n))}end(){let e=this._held;return this._held="",this._shown(e)}_shown(e){let s=D(e,this._before);return this._before=e.at(-1)??this._before,s}};function Dn(t,e){let s=Bn.test(t),n="";for(let i=0;i<t.length;){let o=String.fromCodePoint(t.codePointAt(i));je.lastIndex=i;let r=o==="🏴"?je.exec(t)?.[0]:void 0;if(r){n+=r,i+=r.length;continue}i+=o.length,On.test(o)?n+="�":Ln.test(o)?n+=s?o:"�":bt.test(o)?n+=Pn(t[i-2]??e,t[i])?o:"�":n+=o}return n}function Pn(t,e){return[t,e].every(s=>s&&s>""&&!bt.test(s))}function u(t){return D(t).split(/\s+/).filter(Boolean).join(" ")}function X(t,e){return t.length<=e?t:`${t.slice(0,e-1).trimEnd()}…`}var Wn=new Set(["http:","https:","mailto:"]);function Ve(t){let e=String(t).trim();if(D(e)!==e||/\s/.test(e))return null;try{let s=new URL(e),n=s.username||s.password;return Wn.has(s.protocol)&&!n?s.href:null}catch{return null}}function j({killed:t}){let{processes:e=0,all_dead:s=!0,ms:n="?",how:i="?",cancel:o}=t??{};return e?`${e} ${e===1?"process":"processes"} ended in ${n} ms, ${s?i==="pidns"?"none left":"none found":"some may be left"} (${i}${o?`, cancel ${o}`:""})`:s?"nothing of it was running":"what an earlier life left of it is still there"}function vt({processes:t=0,words:e=""}){let s=t===1?"1 process is":`${t} processes are`;return`${t?`was killed, but ${s} still there: ${e}`:`has ended, but ${e}`}; its session is held until then`}function kt({signal:t,exit:e}){return t?u(t):e?`exit ${e}`:""}var Un={length:"cut off: the model's limit of length was reached",content_filter:"cut off by the server's content filter",refusal:"the model declined to answer",empty:"the model gave an empty answer"};function St({finish:t}){let e=u(t||"stop");return e==="stop"?"":Un[e]??`the model ended it: ${e}`}function xt(t){let e=String(t??""),s;try{s=JSON.parse(e)}catch{return u(e.replace(/^\{"\w+": "/,""))}if(s===null||typeof s!="object"||Array.isArray(s))return u(e);let n=Object.entries(s).map(([i,o])=>[i,Ke(o)]);return n.length===1?u(n[0][1]):n.map(([i,o])=>`${u(i)}: ${u(o)}`).join(", ")}function Fe(t){try{let e=JSON.parse(t);if(e&&typeof e=="object"&&!Array.isArray(e))return Object.entries(e).map(([s,n])=>[s,Ke(n)])}catch{}return t?[["",t]]:[]}function Ke(t){return typeof t=="string"?t:JSON.stringify(t)}function Y(t){return String(Math.round(t)).replace(/\B(?=(\d{3})+$)/g,",")}function J(t,e){return t===1?`1 ${e}`:`${t} ${e}s`}function A(t){if(typeof t!="number")return"–";let e=Math.floor(t);return e<60?t<10&&t!==e?`${t.toFixed(1)}s`:`${e}s`:e<3600?`${Math.floor(e/60)}m ${e%60}s`:e<86400?`${Math.floor(e/3600)}h ${Math.floor(e%3600/60)}m`:`${Math.floor(e/86400)}d ${Math.floor(e%86400/3600)}h`}function Qt(t){if(typeof t!="number")return"–";let e=t;for(let s of["B","KiB","MiB"]){if(e<1e3)return e>=10||s==="B"?`${e.toFixed(0)} ${s}`:`${e.toFixed(1)} ${s}`;e/=1024}return`${e.toFixed(1)} GiB`}function z(t){let e=new Date(t*1e3);return`${zt(e.getHours())}:${zt(e.getMinutes())}`}function Xe(t){let e=new Date(Math.round(t*1e3));return`${z(t)}:${zt(e.getSeconds())}.${String(e.getMilliseconds()).padStart(3,"0")}`}var zt=t=>String(t).padStart(2,"0");function ze(t,e,s){let n=t.trim();return s.includes(n)?n:/^\d+$/.test(n)&&Number(n)>=1&&Number(n)<=s.length?s[Number(n)-1]:e!=="approve"?n:{y:"yes",n:"no",...s.includes("always")?{a:"always"}:{}}[n.toLowerCase()]??n}function Qe(t){let e=t.ending.usage?.output_tokens;return[z(t.endedAt),t.openedAt?A(Math.max(0,t.endedAt-t.openedAt)):"",e?J(e,"token"):"",t.losses?`${J(t.losses,"attempt")} lost`:""].filter(Boolean).join(" · ")}var nt="hermes.";function q(t,e){try{e===null||e===""?localStorage.removeItem(nt+t):localStorage.setItem(nt+t,JSON.stringify(e))}catch{}}function k(t,e=null){try{return JSON.parse(localStorage.getItem(nt+t))??e}catch{return e}}function Et(t){addEventListener("storage",({key:e})=>{e?.startsWith(nt)&&t(e.slice(nt.length))})}function Ge(){try{for(let t of Object.keys(localStorage))t.startsWith(nt)&&localStorage.removeItem(t)}catch{}}import{signal as Hn}from"./vendor.js";var Gt="main",_=Hn(Jt());function Je(){let t=/^#code=([^&]+)/.exec(location.hash)?.[1];return t?(history.replaceState(null,"",location.pathname),_.value=Jt(),decodeURIComponent(t)):""}function V(t,e=""){location.hash=t==="talk"?`#/talk/${encodeURIComponent(e)}`:`#/${t}`}function Jt(){let[,t,e]=/^#\/(\w+)(?:\/(.*))?$/.exec(location.hash)??[];return t==="watch"?{view:"watch",session:k("session",Gt)}:{view:"talk",session:t==="talk"&&e?jn(e):k("session",Gt)}}function jn(t){try{return decodeURIComponent(t)}catch{return Gt}}addEventListener("hashchange",()=>{_.value=Jt(),_.value.view==="talk"&&q("session",_.value.session)});var Ye=/[\ud800-\udfff]/;function Yt(t){if(!Ye.test(t))return t.length;let e=0;for(let s of t)e+=1;return e}function Tt(t,e){if(!Ye.test(t))return Math.min(e,t.length);let s=0;for(let n=e;n>0&&s<t.length;n-=1)s+=t.codePointAt(s)>65535?2:1;return s}var Vn=new Set(["done","failed","interrupted"]);function Fn(t,e){for(let s=e;s<t.length;s+=1)if(t[s].trim())return!1;return!0}var P=class{constructor(e,s=0){this.id=e,this.openedAt=s,this.messages=[],this.agent="",this.state="queued",this.text="",this.marks=[],this.attempt=0,this.losses=0,this.lost="",this.stuck="",this.endedAt=0,this.ending={},this.note="",this.rewrites=0,this.lastSeq=0,this._points=0}get number(){return Number(this.id.slice(this.id.lastIndexOf("/")+1))}get isOpen(){return!Vn.has(this.state)}get question(){return this._marks("question").find(e=>e.state==="open")??null}get runningTools(){return this._marks("tool").filter(e=>e.state==="running")}pieces(){let e=[],s=0,n=i=>{let o=this.text.slice(s,i);o.trim()&&e.push({key:`text ${this.rewrites} ${s}`,text:o})};for(let[i,o]of this.marks)n(i),e.push({key:o.key,mark:o}),s=Math.max(s,i);return n(this.text.length),e.at(-1)?.text!==void 0&&(e.at(-1).isLast=!0),e}beginAttempt(e){this.attempt=e,this.lost=this.stuck=this.note="",this.state="running"}append(e,s,n){if(!this.isOpen)return!1;let i=e>this.attempt;i&&this.beginAttempt(e);let o=this.note!=="";if(this.note="",s>this._points)return i||o;let r=n.slice(Tt(n,this._points-s)),l=this.text.length>this._tailBegin&&!Fn(this.text,this._tailBegin);return this.text+=r,this._points+=Yt(r),i||o||!l}get _tailBegin(){return this.marks.reduce((e,[s])=>Math.max(e,s),0)}get tail(){return this.text.slice(this._tailBegin)}remark(e,s=""){if(this.isOpen){this.note=e;for(let n of this.runningTools)n.call===s&&(n.note=e)}}startTool({call:e,name:s,summary:n,at:i}){this._mark({kind:"tool",key:`tool ${this.attempt} ${e}`,call:String(e),name:String(s),summary:String(n??""),attempt:this.attempt,state:"running",startedAt:i,ms:0,ended:"",note:""})}finishTool(e){let s=this._marks("tool").find(n=>n.call===e.call&&n.state==="running");s&&(s.state=e.ok?"ok":"failed",s.ms=Number(e.ms??0),s.ended=kt(e),this.note="")}ask({question:e,kind:s,text:n,choices:i,offset:o}){let r=this.marks.at(-1)?.[1];r?.kind==="tool"&&r.state==="running"&&this.marks.pop(),this._mark({kind:"question",key:`question ${e}`,id:String(e),asks:String(s),text:String(n),choices:(i??[]).map(String),state:"open",answer:"",by:"",offset:o??null}),this.state="asking"}answer({question:e,text:s,by:n}){for(let i of this._marks("question"))i.id===e&&Object.assign(i,{state:"answered",answer:String(s),by:String(n??"")});this.state="queued"}steer(e){this._mark({kind:"steered",key:`steered ${e}`,message:e})}lose(e,s){if(this._cutTools(),this.losses+=1,this.lost=e||"no reason was given",this.state=this.question?"asking":"queued",s==null||s>=this._points)return;let n=Tt(this.text,s);this.text=this.text.slice(0,n),this._points=s,this.marks=this.marks.map(([i,o])=>[Math.min(i,n),o]),this.rewrites+=1}end(e,s){let n=e==="done"?s.text:s.partial;typeof n=="string"&&(n||e==="done")&&this._settle(n),this._cutTools();let i=this.question;i&&(i.state="withdrawn"),Object.assign(this,{state:e,endedAt:s.at,ending:s,lost:"",stuck:"",note:""})}_settle(e){let s=e.startsWith(this.text);s||(this.rewrites+=1),this.marks=this.marks.map(([n,i])=>typeof i.offset=="number"?[Tt(e,i.offset),i]:[s?n:0,i]),this.text=e,this._points=Yt(e)}_mark(e){this.marks.push([this.text.length,e])}_marks(e){return this.marks.map(([,s])=>s).filter(s=>s.kind===e).reverse()}_cutTools(){for(let e of this.runningTools)e.state="cut"}};var Kn=()=>{},Mt=class{constructor(e=Kn){this.touched=e,this.items=[],this.messages=new Map,this.turns=new Map,this.firstSeq=0,this.seq=0,this.isHeld=!1,this.busy="",this.begun=null}get openTurn(){let e=this.lastTurn;return e?.isOpen?e:null}get lastTurn(){return this.items.findLast(e=>e instanceof P)??null}get question(){return this.openTurn?.question??null}get waiting(){return[...this.messages.values()].filter(e=>e.state==="waiting"||e.state==="transcribing")}take(e){if(e.type==="delta"){let s=this._turn(e.turn,0);this.touched(s,!s.append(e.attempt,e.offset,e.text))}else if(e.type==="note")this._takeNote(e);else return this._takeEvent(e);return!0}takeQueue(e){let s=new Map;for(let n of e){if(this.isHeld||=!!n.held,this.messages.has(n.message))continue;let i=Zt(n.message,n.at??0,n);i.state=n.state==="transcribing"?"transcribing":"waiting",s.set(n.message,i)}s.size&&(this.messages=new Map([...s,...this.messages]),this.touched(null))}forgetBefore(e){let s=0;for(;s<this.items.length-1&&this.items[s].lastSeq<e;){let n=this.items[s++],i=n instanceof P?n.messages:[n.id];this.turns.delete(n.id);for(let o of i)this.messages.delete(o)}this.items.splice(0,s),this.firstSeq=Math.max(this.firstSeq,e),s&&this.touched(null)}_takeEvent(e){if(e.seq<=this.seq)return!1;this.seq=e.seq,this.firstSeq||=e.seq,Xn[e.type]?.(this,e);let s=this.turns.get(e.turn);return s&&(s.lastSeq=e.seq,this.touched(s)),!0}_takeNote({turn:e,text:s,call:n}){this.turns.has(e)?(this.turns.get(e).remark(s,n),this.touched(this.turns.get(e))):this.messages.has(e)&&(this.messages.get(e).note=s,this.touched(null))}_turn(e,s){let n=this.turns.get(e);return n||(n=new P(e,s),this.turns.set(e,n),this.items.push(n),this.touched(null)),n}_of(e){return this._turn(e.turn,e.at)}_message(e){return this.messages.has(e.message)||this.messages.set(e.message,Zt(e.message,e.at,{})),this.messages.get(e.message)}_accept(e){let s=Zt(e.message,e.at,e);s.state=e.kind==="voice"?"transcribing":"waiting",this.messages.set(e.message,s),this.busy=s.busy||this.busy,this.touched(null)}_understand(e){let s=this._message(e);s.state="waiting",s.text=e.echo===!1?"":String(e.text??""),this.touched(null)}_misunderstand(e){let s=this._message(e);Object.assign(s,{state:"not understood",reason:String(e.reason),hint:String(e.hint??"")}),this._putAside(s,e.seq)}_drop(e){let s=this._message(e);Object.assign(s,{state:"dropped",by:String(e.by??"")}),this._putAside(s,e.seq)}_putAside(e,s){e.lastSeq=s;let n=this.items.length>0&&this.items.at(-1)===this.openTurn;this.items.splice(this.items.length-Number(n),0,e),this.touched(null)}_open(e){let s=this._of(e);s.agent=String(e.agent??s.agent);for(let n of e.messages??[])s.messages.push(n),this._message({message:n,at:e.at}).state="taken";this.touched(null)}_steer(e){this._message(e).state="taken",this._of(e).steer(e.message),this.touched(null)}_answer(e){e.message&&(this._message(e).state="taken"),this._of(e).answer(e),this.touched(null)}_hold(e){this.isHeld=e,this.touched(null)}};function Zt(t,e,{text:s,kind:n,busy:i,by:o}){return{id:t,at:e,text:String(s??""),kind:n||"text",busy:String(i??""),state:"waiting",by:String(o??""),reason:"",hint:"",note:"",lastSeq:0}}var te=t=>(e,s)=>{e._of(s).end(t,s),e.touched(null)},Xn={"session.begun":(t,e)=>{t.begun={from:e.from??"",through:e.through??0,turns:e.turns??0},t.touched(null)},"message.accepted":(t,e)=>t._accept(e),"transcript.ready":(t,e)=>t._understand(e),"transcript.failed":(t,e)=>t._misunderstand(e),"message.dropped":(t,e)=>t._drop(e),"session.held":t=>t._hold(!0),"session.released":t=>t._hold(!1),"turn.opened":(t,e)=>t._open(e),"turn.joined":(t,e)=>t._open(e),"attempt.opened":(t,e)=>t._of(e).beginAttempt(Number(e.attempt??1)),"attempt.stuck":(t,e)=>{t._of(e).stuck=vt(e)},"attempt.lost":(t,e)=>t._of(e).lose(String(e.reason??""),e.offset),"tool.started":(t,e)=>t._of(e).startTool(e),"tool.finished":(t,e)=>t._of(e).finishTool(e),"question.asked":(t,e)=>{t._of(e).ask(e),t.touched(null)},"question.answered":(t,e)=>t._answer(e),"turn.steered":(t,e)=>t._steer(e),"turn.done":te("done"),"turn.failed":te("failed"),"turn.interrupted":te("interrupted"),"journal.repaired":(t,e)=>{t.items.push({id:`gap ${e.seq}`,gap:Number(e.lost??0),lastSeq:e.seq}),t.touched(null)}};import{batch as zn,signal as it}from"./vendor.js";var Ze=200,ts=1500,es=1e4,ss=1e3,ee=`tail
`,Qn=100,Ct=class{constructor(e,s,n){this.session=e,this._live=s,this._heard=n,this.state=it("away"),this.shape=it(0),this.interrupting=it(""),this.isReadingEarlier=it(!1),this.past=it([]),this._versions=new Map,this._dirty=new Set,this._isScheduled=!1,this._events=[],this._eventsMax=ts,this._log()}_log(){return this.log=new Mt((e,s)=>this._touch(e,s)),this.log}get hasEarlier(){return this.log.firstSeq>1}version(e){return this._versions.has(e)||this._versions.set(e,it(0)),this._versions.get(e)}tailVersion(e){return this.version(ee+e)}follow(){this.log.seq?(this.state.value="joining",this._live.send({subscribe:this.session,after:this.log.seq}),this._readQueue()):(this.state.value="locating",this._live.send({subscribe:this.session}))}begin(){this.state.value==="new"&&(this.state.value="joining",this._live.send({subscribe:this.session,after:0}))}leave(){this._live.send({unsubscribe:this.session}),this.state.value="away"}lost(){this.state.value=this.state.value==="new"?"new":"away",this.interrupting.value=""}take(e){e.type==="subscribed"?this._subscribed(e.seq):e.type==="cut"?this._again(0):e.type==="error"?this._failed(e.error):e.type!=="unsubscribed"&&this.state.value==="following"&&this._takeItem(e)}async readEarlier(){if(!(this.isReadingEarlier.value||!this.hasEarlier||this._events.length>=es)){this.isReadingEarlier.value=!0;try{let e=await He(this.session,this.log.firstSeq,Ze);this._putBefore(e)}finally{this.isReadingEarlier.value=!1}}}_subscribed(e){this.state.value==="joining"?this.state.value="following":this.state.value==="locating"&&(this.state.value="joining",this._live.send({subscribe:this.session,after:Math.max(0,e-Ze)}),this._readQueue())}_failed({code:e}){e==="unknown"?(this.state.value="new",this._touch(null)):e==="unavailable"||e==="full"?this._again(ss):(this._events=[],this._log(),this._touch(null),this._again(ss))}_again(e){this.state.value="away",setTimeout(()=>this._live.isUp&&this.state.value==="away"&&this.follow(),e)}_takeItem(e){if(!(!this.log.take(e)||!e.seq)){if(this._events.push(e),this._events.length>this._eventsMax){this._events.splice(0,100),this.log.forgetBefore(this._events[0].seq);for(let s of this._versions.keys())this.log.turns.has(s.replace(ee,""))||this._versions.delete(s)}e.turn===this.interrupting.value&&!this.log.turns.get(e.turn)?.isOpen&&(this.interrupting.value=""),e.type==="session.begun"&&this._readPast(),this._heard(this,e)}}_putBefore(e){let s=this.log,n=e.filter(l=>l.seq<s.firstSeq);this._events=[...n,...this._events],this._eventsMax=Math.min(es,Math.max(this._eventsMax,this._events.length+ts));let i=this._log();for(let l of this._events)i.take(l);for(let[l,c]of s.messages)i.messages.has(l)||i.messages.set(l,c);let o=s.openTurn,r=o&&i.turns.get(o.id);r&&r.append(r.attempt,0,o.text),n.length||(i.firstSeq=1);for(let l of i.items)l instanceof P&&this._dirty.add(l.id);this._touch(null)}async _readQueue(){try{let{messages:e}=await C(`${S(this.session)}/queue`);this.log.takeQueue(e)}catch(e){if(!(e instanceof g))throw e}}async _readPast(){try{let e=await C(`${S(this.session)}/history?before=1&limit=${Qn}`);this.past.value=e.turns.filter(s=>s.state==="past").reverse()}catch(e){if(!(e instanceof g))throw e}}_touch(e,s=!1){this._dirty.add(e instanceof P?(s?ee:"")+e.id:null),!this._isScheduled&&(this._isScheduled=!0,document.hidden?setTimeout(()=>this._draw(),50):requestAnimationFrame(()=>this._draw()))}_draw(){this._isScheduled=!1;let e=this._dirty;this._dirty=new Set,zn(()=>{for(let s of e)s===null?this.shape.value+=1:this.version(s).value+=1})}};var ns=[100,300,700,1500,3e3,5e3],Gn=5e3,is=2e4,Jn=3e4,At=class{constructor({take:e,changed:s,ended:n,address:i=Yn()}){this._take=e,this._changed=s,this._ended=n,this._address=i,this._socket=null,this._failures=0,this._timer=0,this._heardAt=0,this._tickedAt=Date.now(),this._isAsked=!1,this._isClosed=!0,this.isUp=!1}open(){this._isClosed&&(this._isClosed=!1,this._ticker=setInterval(()=>this._tick(),Gn),this._now=()=>this.reconnect(),this._seen=()=>document.visibilityState==="visible"&&!this.isUp&&this.reconnect(),addEventListener("online",this._now),document.addEventListener("visibilitychange",this._seen),this._connect())}close(){this._isClosed=!0,clearInterval(this._ticker),clearTimeout(this._timer),removeEventListener("online",this._now),document.removeEventListener("visibilitychange",this._seen),this._drop()}send(e){return this.isUp?(this._socket.send(JSON.stringify(e)),!0):!1}reconnect(){this._isClosed||(clearTimeout(this._timer),this._drop(),this._connect())}_connect(){let e=new WebSocket(this._address);this._socket=e,e.onopen=()=>{e===this._socket&&(this.isUp=!0,this._failures=0,this._heardAt=Date.now(),this._isAsked=!1,this._changed(!0))},e.onmessage=({data:s})=>{e===this._socket&&(this._heardAt=Date.now(),this._isAsked=!1,this._take(JSON.parse(s)))},e.onclose=({code:s})=>{if(e!==this._socket)return;this._lost(),this._ended(s);let n=ns[Math.min(this._failures++,ns.length-1)];this._isClosed||(this._timer=setTimeout(()=>this._connect(),n))}}_drop(){let e=this._socket;this._socket=null,e?.close(),this._lost()}_lost(){this.isUp&&(this.isUp=!1,this._changed(!1))}_tick(){let e=Date.now(),s=e-this._tickedAt>Jn;this._tickedAt=e,this.isUp&&(s||this._isAsked&&e-this._heardAt>is?this.reconnect():e-this._heardAt>is&&(this._isAsked=!0,this.send({unsubscribe:"?"})))}};function Yn(){return`${location.protocol==="https:"?"wss:":"ws:"}//${location.host}/api/live`}import{batch as Zn,signal as ti}from"./vendor.js";var os=500,ei=8e3,si=100,qt=class{constructor(e){this._accepted=e,this.items=ti(k("outbox",[])),this._isPumping=!1,this._pause=os,Et(s=>s==="outbox"&&this._adopt())}of(e){return this.items.value.filter(s=>s.session===e)}get isFull(){return this.items.value.length>=si}add(e,{text:s="",clip:n=null,busy:i=""}){let o=`console-${crypto.randomUUID?.()??ii()}`;this._set([...this.items.value,{key:o,session:e,text:s,clip:n,busy:i,state:"sending",message:"",fault:"",hint:""}]),this.pump()}remove(e){this._set(this.items.value.filter(s=>s.key!==e))}again(e){this._update(e,{state:"sending",fault:"",hint:""}),this.pump()}forgetArrived(e,s){let n=this.items.value.filter(i=>!(i.session===e&&i.message&&s.has(i.message)));n.length<this.items.value.length&&this._set(n)}async pump(){if(!this._isPumping){this._isPumping=!0,clearTimeout(this._timer);try{for(let e;e=this.items.value.find(s=>s.state==="sending");)await this._send(e),this._pause=os}catch(e){if(!(e instanceof g))throw e;if(e.status!==401){let s=Math.max(this._pause,e.retrySeconds*1e3);this._timer=setTimeout(()=>this.pump(),s),this._pause=Math.min(this._pause*2,ei)}}finally{this._isPumping=!1}}}async _send(e){try{let{message:s,seq:n}=await v(`${S(e.session)}/messages`,{key:e.key,...ni(e)});this._update(e.key,{state:"accepted",message:s,clip:null}),this._accepted({...e,message:s},n)}catch(s){if((!(s instanceof g)||s.isPassing||s.status===401)&&(s.code!=="full"||e.clip))throw s;this._update(e.key,{state:"refused",fault:s.message,hint:s.hint})}}_update(e,s){this._set(this.items.value.map(n=>n.key===e?{...n,...s}:n))}_set(e){Zn(()=>this.items.value=e),q("outbox",e.filter(s=>!s.clip&&s.state!=="accepted"))}_adopt(){let e=k("outbox",[]),s=this.items.value.filter(n=>n.clip||n.state==="accepted");this.items.value=[...s,...e.filter(n=>!s.some(i=>i.key===n.key))]}};function ni({text:t,clip:e,busy:s}){if(!e)return{json:{text:t,...s?{busy:s}:{}}};let n=new FormData;return s&&n.append("busy",s),n.append("audio",e.blob,e.name),{form:n}}function ii(){return Array.from(crypto.getRandomValues(new Uint8Array(16)),t=>t.toString(16).padStart(2,"0")).join("")}var Nt=class{constructor(){this._series=new Map,this._turnsEnded=null}of(e){return this._series.get(e)??[]}take(e,s){if(!e)return;this._put("busy",e.busy??0),this._put("waiting",(e.waiting??0)+(e.queued??0)),this._put("lag",e.lag_ms??0);let n=e.turns_ended??0;this._turnsEnded!==null&&this._put("ended",Math.max(0,n-this._turnsEnded)),this._turnsEnded=n,this._put("memory",as(s,"memory_bytes")),this._put("cpu",as(s,"cpu_percent"))}_put(e,s){let n=[...this.of(e),Number(s)||0];this._series.set(e,n.slice(-60))}};function as(t,e){return(t??[]).reduce((s,n)=>s+(n[e]??0),0)}function rs(t,e,s){let n=Math.max(...t,1e-9),i=e/59,o=e-i*(t.length-1);return t.map((r,l)=>`${(o+l*i).toFixed(1)},${(s-1-r/n*(s-2)).toFixed(1)}`).join(" ")}import{computed as cs,signal as W}from"./vendor.js";var oi=4e3,ai=100,ri=50,x=W(null),rt=W(""),N=W("connecting"),Q=W(new Map),Rt=W(""),ot=W(k("seen",{})),F=W([]),ne=W(null),ie=new Nt,at=W([]),oe=W(""),m=t=>!!x.value?.rights?.includes(t),U=cs(()=>N.value==="up"||N.value==="back"),L=new Map,us=new Set,se=[],Z=new At({take:hi,changed:t=>t?di():pi(),ended:()=>Lt()}),w=new qt(({session:t,message:e})=>{let s=L.get(t);if(!s)return w.forgetArrived(t,new Set([e]));s.begin(),fs(s)});function ae(t){us.add(t)}function It(t){let e=L.get(t);return e||(e=new Ct(t,Z,mi),L.set(t,e),Z.isUp&&e.follow(),ci()),e}var li=20;function ci(){let[t]=L.keys();L.size>li&&(L.get(t).leave(),L.delete(t))}function ds(t){se=t,Z.send({watch:t})}async function ps(t){We(ui),Et(e=>e==="seen"&&(ot.value=k("seen",{}))),t&&await re({code:t}).catch(e=>rt.value=he(e)),x.value||await Lt()}async function re(t){await v("/api/login",{json:t,isLogin:!0}),rt.value="",await Lt()}async function hs(){Z.close(),await v("/api/logout",{isLogin:!0}).catch(()=>{}),Ge(),location.reload()}async function Lt(){try{let t=await C("/api/me");x.value||(x.value=t,Z.open(),w.pump())}catch(t){if(!(t instanceof g))throw t;t.status!==401&&x.value===null&&setTimeout(Lt,1e3),t.status!==401&&(N.value="away")}}function ui(){x.value&&(rt.value="This browser was signed out. What you typed is kept; log in again to go on."),x.value=!1,Z.close()}function di(){le("up"),se.length&&Z.send({watch:se});for(let t of L.values())t.follow();w.pump(),Q.value.size||ce()}function pi(){le("away");for(let t of L.values())t.lost()}var ls=0;function le(t){let e=N.value;if(t===e||t==="up"&&e==="back")return;clearTimeout(ls);let s=t==="up"&&(e==="away"||e==="waiting");N.value=s?"back":t,s&&(ls=setTimeout(()=>N.value==="back"&&(N.value="up"),oi)),s&&w.pump()}function hi(t){t.type==="sessions"?ue(t.rows):t.type==="questions"?F.value=t.rows:t.type==="service"?$i(t):t.type==="supervisor"?le(t.up?"up":"waiting"):fi(t)?.take(t)}function fi({session:t,turn:e}){return t===""&&e?[...L.values()].find(s=>s.log.messages.has(e)):L.get(t)}function mi(t,e){fs(t),gi(t,e);for(let s of us)s(t,e)}function fs(t){w.forgetArrived(t.session,t.log.messages)}function $i({status:t,workers:e,services:s}){ne.value={status:t,workers:e,services:s},ie.take(t,e)}async function ce(t=""){try{let e=await C(`/api/sessions?limit=${ai}${t?`&after=${encodeURIComponent(t)}`:""}`);ue(e.sessions),Rt.value=e.more}catch(e){if(!(e instanceof g))throw e}}async function ms(t){return(await C(`/api/sessions?limit=50&words=${encodeURIComponent(t)}`)).sessions}function ue(t){if(!t.length)return;let e=new Map(Q.value);for(let s of t)e.set(s.session,{...e.get(s.session),...s});Q.value=e;for(let s of t)s.seq&&L.get(s.session)?.begin()}var Ot=new Map;function gi(t,e){Ot.size||setTimeout(()=>{ue([...Ot.values()]),Ot.clear()},ri),Ot.set(t.session,wi(t,e))}function wi({session:t,log:e},s){let n=e.openTurn?"occupied":e.isHeld?"held":"free";return{session:t,seq:e.seq,last_at:s.at,state:n,waiting:e.waiting.length}}var Bt=cs(()=>[...Q.value.values()].sort((t,e)=>(e.last_at??0)-(t.last_at??0)));function $s(t,e){!e||ot.value[t]>=e||(ot.value={...ot.value,[t]:e},q("seen",ot.value))}function de(t){let e=ot.value[t.session];return e!==void 0&&t.seq>e}var _i=0;function E(t,e="",s="fault"){let n=++_i;at.value=[...at.value.slice(-3),{id:n,fault:t,hint:e,tone:s}],s!=="fault"&&setTimeout(()=>pe(n),5e3)}function pe(t){at.value=at.value.filter(e=>e.id!==t)}async function $(t){try{return await t()}catch(e){if(!(e instanceof g))throw e;e.status!==401&&E(ht(e.message),ht(e.hint));return}}var he=t=>[t.message,t.hint].filter(Boolean).map(ht).join(". "),ht=t=>t.charAt(0).toUpperCase()+t.slice(1);function tt(t){oe.value=t}function lt(t){let e=t.log.openTurn;return e?U.value?(t.interrupting.value=e.id,$(async()=>{try{let s={expect_turn:e.id},n=await v(`${S(t.session)}/interrupt`,{json:s});n.unwritten?E(`Stopped: ${j(n)}`,`Not yet written down: ${n.unwritten}`,"plain"):n.turn&&tt(`Interrupted: ${j(n)}`)}finally{t.interrupting.value===e.id&&(t.interrupting.value="")}}),!0):(E("The supervisor is away, so nothing can be stopped now","What runs is settled when it is back"),!1):!1}async function Dt(t,e){let s=ze(e,t.asks??t.kind,t.choices??[]),n=t.id??t.question,i=`/api/questions/${encodeURIComponent(n)}/answer`;return await $(()=>v(i,{json:{text:s}}))!==void 0}var ws=(t,e)=>$(()=>Xt(`${S(t)}/queue/${encodeURIComponent(e)}`)),_s=t=>$(()=>Xt(`${S(t)}/queue`)),ys=t=>$(()=>v(`${S(t)}/queue/resume`)),bs=t=>$(()=>v(`${_t(t)}/retry`,{key:crypto.randomUUID?.()}));function vs(t){return $(()=>v(`/api/messages/${encodeURIComponent(t)}/retry`,{key:crypto.randomUUID?.()}))}var ks=t=>C(`${_t(t)}/why`),Ss=t=>C(`/api/messages/${encodeURIComponent(t)}/why`),xs=(t,e)=>C(`${_t(t)}/calls/${encodeURIComponent(e)}`);async function Es(t,e,s){let n=await yi(t),i={through_turn:e.number-1,session:n};return await $(()=>v(`${S(t)}/fork`,{json:i,key:`fork ${n}`}))?(w.add(n,{text:s}),V("talk",n),!0):!1}var Ts=/^(.*)~(\d+)$/,ft=t=>Ts.exec(t)?.[1]??t;function fe(t){let e=ft(t),s=[...Q.value.keys()].filter(n=>ft(n)===e&&n!==e);return t!==e&&!s.includes(t)&&s.push(t),s.length?[e,...s.sort((n,i)=>gs(n)-gs(i))]:[]}var gs=t=>Number(Ts.exec(t)?.[2]??1);async function yi(t){let e=ft(t),s=fe(t);for(let n=2;;n+=1){let i=`${e}~${n}`;if(!s.includes(i)&&!await bi(i))return i}}async function bi(t){try{return await C(`${S(t)}/queue`),!0}catch(e){return e.status!==404}}var Ms=()=>$(()=>v("/api/drain")),Cs=()=>$(()=>v("/api/undrain")),As=t=>$(()=>v("/api/scale",{json:{seats:t}}));import{h as qs,htm as vi,useEffect as ki,useRef as Si}from"./vendor.js";var a=vi.bind(qs),xi={send:"M5 12h13M12 5l7 7-7 7",stop:"M7 7h10v10H7z",mic:"M12 15a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v6a3 3 0 0 0 3 3zM5 11a7 7 0 0 0 14 0M12 18v3",menu:"M4 7h16M4 12h16M4 17h16",plus:"M12 5v14M5 12h14",close:"M6 6l12 12M18 6L6 18",watch:"M3 12h4l3-7 4 14 3-7h4",help:"M9.2 9a3 3 0 1 1 4.3 2.7c-.9.5-1.5 1.2-1.5 2.3M12 17.5v.01M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",bell:"M18 9a6 6 0 0 0-12 0c0 6-2 7-2 7h16s-2-1-2-7M10.5 20a2 2 0 0 0 3 0",leave:"M10 4H5v16h5M15 8l4 4-4 4M19 12H9",search:"M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l4.5 4.5",edit:"M4 20h4L19 9l-4-4L4 16zM13 7l4 4",retry:"M20 12a8 8 0 1 1-2.5-5.8M20 4v4h-4",copy:"M9 9h10v10H9zM5 15V5h10",why:"M12 8v5l3 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",down:"M12 5v14M6 13l6 6 6-6",back:"M19 12H5M11 6l-6 6 6 6",fold:"M9 6l6 6-6 6",branch:"M7 5v14M7 12c6 0 10-1 10-6M17 6V4M7 5V3",theme:"M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18"};function O({name:t}){return a`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${xi[t]} /></svg>`}function f({icon:t,label:e,class:s="",...n}){return a`<button type="button" class=${`icon-button ${s}`} aria-label=${e} title=${e} ...${n}>
    <${O} name=${t} />
  </button>`}function p({of:t,class:e="",tag:s="span"}){return qs(s,{class:e,dir:"auto"},D(t))}function Pt({title:t,onClose:e,children:s,class:n=""}){let i=Si(null);ki(()=>{let r=i.current;return r.showModal(),()=>r.close()},[]);let o=r=>r.target===i.current&&e();return a`<dialog ref=${i} class=${`dialog ${n}`} aria-label=${t} onClose=${e} onClick=${o}>
    <div class="dialog-inner">
      <header class="dialog-head">
        <h2>${t}</h2>
        <${f} icon="close" label="Close" onClick=${e} />
      </header>
      ${s}
    </div>
  </dialog>`}async function Wt(t){try{return await navigator.clipboard.writeText(t),!0}catch{return!1}}var Ei=[["Enter","send; with Shift a new line (on a phone the button sends)"],["Esc","stop what runs, withdraw a question, cancel a recording; close a dialog"],["/","write"],["Alt ↑, Alt ↓","the session above, below"],["Ctrl K","search sessions"],["?","this list"]];function Ns({onClose:t}){return a`<${Pt} title="Keys" onClose=${t}>
    <dl class="keys">
      ${Ei.map(([e,s])=>a`<div key=${e}><dt><kbd>${e}</kbd></dt><dd>${s}</dd></div>`)}
    </dl>
    <p class="dim small">
      Hold the microphone to talk, or click it and click again. A sound file can be dropped on the conversation. A pencil beside
      your words asks them otherwise, in a branch. A clock shows why: every step of a message or a turn.
    </p>
  <//>`}import{useState as Os}from"./vendor.js";var Rs=/^[a-z0-9]{4}[- ]?[a-z0-9]{4}$/i;function Is(){let[t,e]=Os(""),[s,n]=Os(!1);return a`<main class="login">
    <form class="login-card" onSubmit=${async o=>{o.preventDefault();let r=t.trim();if(!(!r||s)){n(!0);try{await re(Rs.test(r)?{code:r.replace(" ","-").toUpperCase()}:{token:r})}catch(l){if(!(l instanceof g))throw l;rt.value=he(l)}finally{n(!1)}}}}>
      <${me} />
      <h1>hermes supervisor</h1>
      <p class="dim">
        On the machine where it runs, <code>hermesctl pair</code> prints a code that is valid for five minutes.
      </p>
      <label for="secret">Pairing code or token</label>
      <input
        id="secret"
        type=${Rs.test(t.trim())||!t?"text":"password"}
        autocomplete="off"
        autocapitalize="characters"
        spellcheck=${!1}
        placeholder="ABCD-EFGH"
        value=${t}
        onInput=${o=>e(o.target.value)}
        autofocus
      />
      <p class="login-reason" role="alert">${rt}</p>
      <button class="primary" type="submit" disabled=${s}>${s?"Logging in …":"Log in"}</button>
    </form>
  </main>`}function me(){return a`<svg class="mark" viewBox="0 0 48 48" aria-hidden="true">
    <rect class="mark-ground" width="48" height="48" rx="12" />
    <path class="mark-wing" d="M12 31c8 0 12-4 13-14 2 5 1 9-1 12 4-1 7-5 8-10 3 8-2 17-12 17-4 0-7-2-8-5z" />
    <circle class="mark-dot" cx="35" cy="13" r="3" />
  </svg>`}import{effect as Ls,signal as Ti,untracked as Bs}from"./vendor.js";var $e=Ti(k("notices",!1)),Ws="Notification"in window,Ds="hermes",Mi=new Set(["turn.done","turn.failed","turn.interrupted"]);function Us(){if(!Ws)return null;let t=$e.value&&Notification.permission==="granted";return a`<${f} icon="bell" class=${t?"on":""} label=${t?"Notices are on: switch off":"Notices when a turn ends or asks: switch on"} aria-pressed=${t} onClick=${async()=>{if(t)return Ps(!1);let n=await Notification.requestPermission();return n!=="granted"&&E("The browser does not allow notices of this page","Allow them in the settings of the site, then switch them on again"),Ps(n==="granted")}} />`}function Ps(t){$e.value=t,q("notices",t)}function Hs({session:t},e){Mi.has(e.type)&&Ut(t,Ci[e.type](e),`${t} turn`),e.type==="question.asked"&&Ut(t,`asks: ${X(u(e.text),120)}`,`${t} question`)}var Ci={"turn.done":({text:t})=>X(u(t),140)||"has answered","turn.failed":({error:t})=>`failed: ${X(u(t),120)}`,"turn.interrupted":()=>"was interrupted"};async function Ut(t,e,s){if(!document.hidden||!$e.value||!Ws||Notification.permission!=="granted")return;let n={body:e,tag:s,icon:"/console/icon-192.png",data:{session:t}},i=await navigator.serviceWorker?.getRegistration();i?await i.showNotification(t,n):new Notification(t,n).onclick=()=>window.focus()}function js(t){let e=null,s=new Map;Ls(()=>{let n=F.value,i=e;if(e=new Set(n.map(o=>o.question)),document.title=n.length?`(${n.length}) ${Ds}`:Ds,!!i)for(let o of n)!i.has(o.question)&&!t(o.session)&&Bs(()=>Ut(o.session,`asks: ${X(u(o.text),120)}`,`${o.session} question`))}),Ls(()=>{let n=Q.value;for(let[i,o]of n)s.get(i)?.state==="occupied"&&o.state!=="occupied"&&!t(i)&&Bs(()=>Ut(i,"has news",`${i} turn`));s=n})}import{useEffect as Oi,useState as Fs}from"./vendor.js";import{effect as Ai,signal as qi}from"./vendor.js";var Ni={system:"light",light:"dark",dark:"system"},ct=qi(k("theme","system"));Ai(()=>{ct.value==="system"?delete document.documentElement.dataset.theme:document.documentElement.dataset.theme=ct.value});function Vs(){let t=()=>{ct.value=Ni[ct.value],q("theme",ct.value)};return a`<${f} icon="theme" label=${`Theme: ${ct.value}`} onClick=${t} />`}var Ri=250;function Ks({onChosen:t,onHelp:e}){let[s,n]=Fs(""),[i,o]=Fs(null);Oi(()=>{if(!s.trim())return o(null);let d=!0,y=setTimeout(async()=>{let I=await $(()=>ms(s.trim()));d&&I&&o(I)},Ri);return()=>{d=!1,clearTimeout(y)}},[s]);let r=d=>{V("talk",d),t()},l=d=>{d.preventDefault(),s.trim()&&r(s.trim()),n("")},c=i??Bt.value;return a`<div class="side-inner">
    <header class="brand">
      <${me} />
      <div>
        <strong>hermes</strong>
        <div class="dim small">${x.value.owner||x.value.name}</div>
      </div>
      <span class=${`link-dot ${N.value}`} title=${Ii[N.value]}></span>
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
      <${f} icon="plus" label="New session" onClick=${()=>r(s.trim()||Pi())} />
    </form>
    <nav class="sessions" aria-label="Sessions">
      <ul>
        ${c.map(d=>a`<${Li} key=${d.session} row=${d} onOpen=${r} />`)}
      </ul>
      ${i&&!c.length&&a`<p class="dim side-note">No session has these words. Enter begins one of this name.</p>`}
      ${!i&&Rt.value&&a`<button type="button" class="quiet wide" onClick=${()=>ce(Rt.value)}>Earlier sessions</button>`}
    </nav>
    <footer class="side-foot">
      ${m("operate")&&a`<a class="foot-link" href="#/watch" aria-current=${_.value.view==="watch"?"page":void 0} onClick=${t}>
        <${O} name="watch" /> Watch
        ${F.value.length>0&&a`<span class="count" title="open questions">${F.value.length}</span>`}
      </a>`}
      <span class="foot-buttons">
        <${Us} />
        <${Vs} />
        <${f} icon="help" label="Keys and help (?)" onClick=${e} />
        <${f} icon="leave" label="Log out" onClick=${hs} />
      </span>
    </footer>
  </div>`}var Ii={connecting:"connecting",up:"connected",back:"connected again",away:"the gateway does not answer",waiting:"the supervisor is away"};function Li({row:t,onOpen:e}){let s=_.value.view==="talk"&&_.value.session===t.session,n=F.value.some(o=>o.session===t.session),i=n?"asks":Bi[t.state]??t.state;return a`<li>
    <a
      class=${`session-row ${de(t)&&!s?"news":""}`}
      href=${`#/talk/${encodeURIComponent(t.session)}`}
      aria-current=${s?"page":void 0}
      onClick=${o=>{o.preventDefault(),e(t.session)}}
    >
      <span class=${`dot ${n?"asking":t.state==="at rest"?"rest":t.state}`}></span>
      <${p} class="session-name" of=${t.session} />
      <span class="session-facts small dim">
        ${i&&a`<span>${i}</span>`}
        ${t.waiting>0&&a`<span>${t.waiting} waiting</span>`}
        ${!i&&t.last_at&&a`<span>${Di(t.last_at)}</span>`}
      </span>
      ${de(t)&&!s&&a`<span class="news-dot"><span class="unseen">has news</span></span>`}
    </a>
  </li>`}var Bi={occupied:"running",held:"held",free:"","at rest":""};function Di(t){let e=Math.max(0,Math.floor(Date.now()/1e3-t));return e<60?"now":A(e).split(" ")[0]}function Pi(){return`chat-${new Date().toISOString().slice(5,10)}-${String(crypto.getRandomValues(new Uint16Array(1))[0]%1e4).padStart(4,"0")}`}var Wi=["audio/webm;codecs=opus","audio/mp4","audio/ogg;codecs=opus","audio/webm"];var H=class extends Error{constructor(e,s){super(e),this.hint=s}};function Ui(){return window.isSecureContext?!navigator.mediaDevices?.getUserMedia||!window.MediaRecorder?new H("This browser cannot record sound","Use a current browser, or drop a sound file here"):null:new H("Browsers give the microphone only to secure pages, and this address is not one","Open it on the machine itself (http://localhost), through `ssh -L 8790:localhost:8790 HOST`, or set tls_cert and tls_key")}var Ht=class{constructor(e){this._ended=e,this._isCancelled=!1,this._why="",this._loudest=0,this._parts=[]}async start(){let e=Ui();if(e)throw e;try{this._stream=await navigator.mediaDevices.getUserMedia({audio:{echoCancellation:!0,noiseSuppression:!0}})}catch(n){throw Hi(n)}if(this._isCancelled)return this._close();this._measure();let s=Wi.find(n=>MediaRecorder.isTypeSupported(n));this._recorder=new MediaRecorder(this._stream,{mimeType:s,audioBitsPerSecond:32e3}),this._recorder.ondataavailable=({data:n})=>n.size&&this._parts.push(n),this._recorder.onstop=()=>this._finish(),this._recorder.onerror=()=>this._stop("the recording failed in the browser"),this._stream.getAudioTracks()[0].onended=()=>this._stop("the microphone is gone"),this.startedAt=performance.now(),this._recorder.start(1e3),this._timer=setTimeout(()=>this._stop("15 minutes are the most"),900*1e3)}get seconds(){return this.startedAt===void 0?0:(performance.now()-this.startedAt)/1e3}level(){if(!this._analyser)return 0;this._analyser.getFloatTimeDomainData(this._samples);let e=0;for(let s of this._samples)e=Math.max(e,Math.abs(s));return this._loudest=Math.max(this._loudest,e),Math.min(1,Math.sqrt(e))}stop(){this._stop("")}cancel(){this._isCancelled=!0,this._stop(""),this._recorder||this._close()}_measure(){this._context=new AudioContext,this._analyser=this._context.createAnalyser(),this._analyser.fftSize=1024,this._samples=new Float32Array(this._analyser.fftSize),this._context.createMediaStreamSource(this._stream).connect(this._analyser),this._meter=setInterval(()=>this.level(),100)}_stop(e){this._why||=e,this._recorder?.state==="recording"&&this._recorder.stop()}_finish(){let e=this.seconds;if(this._close(),this._isCancelled)return this._ended(null);let s=this._recorder.mimeType.split(";")[0],n=new Blob(this._parts,{type:s}),i=`recording.${s.split("/")[1]}`;return this._ended({blob:n,name:i,seconds:e,isSilent:this._loudest<.01,why:this._why})}_close(){clearTimeout(this._timer),clearInterval(this._meter);for(let e of this._stream?.getTracks()??[])e.onended=null,e.stop();this._context?.close(),this._analyser=null}};function Hi({name:t,message:e}){let s={NotAllowedError:["The browser does not give this page the microphone","Allow it in the settings of the site, beside the address, then try again"],NotFoundError:["There is no microphone here","Plug one in, or drop a sound file here"],NotReadableError:["The microphone is in use, or does not answer","Close what else uses it, then try again"]};return new H(...s[t]??[`The microphone did not start: ${e}`,"Try again, or drop a sound file here"])}function Xs(t){return/^(audio|video)\//.test(t.type)||/\.(ogg|oga|opus|webm|mp3|m4a|mp4|wav|flac|aac)$/i.test(t.name)?t.size?t.size>26214400?new H(`${t.name} has ${(t.size/1024/1024).toFixed(0)} MiB, the limit is 25 MiB`,"Send it compressed (OGG/Opus), or in parts"):null:new H(`${t.name} is empty`,"Choose another file"):new H(`${t.name} is no sound file`,"Sound files can be dropped here; put words into the message itself")}import{signal as sn,useEffect as Xi,useLayoutEffect as zi,useRef as Qi}from"./vendor.js";import{signal as Qs,useEffect as Vi,useRef as we}from"./vendor.js";var T=Qs("off"),mt=Qs(null),Fi=350,B=null;async function zs(t){if(T.value==="off"){T.value="starting",mt.value=null,B=new Ht(e=>{if(B=null,T.value="off",!e)return tt("The recording was cancelled");e.isSilent||e.why?mt.value=e:t(e)});try{await B.start(),B&&T.value==="starting"&&(T.value="on",tt("Recording"))}catch(e){if(B=null,T.value="off",!(e instanceof H))throw e;E(e.message,e.hint)}}}function ge(){B?.stop()}function _e(){if(T.value==="off")return!1;T.value="off";let t=B;return B=null,t?.cancel(),!0}function Gs({onRecorded:t}){let e=we(0),s=r=>{if(r.button===0){if(r.preventDefault(),T.value==="on")return ge();e.current=performance.now(),r.currentTarget.setPointerCapture(r.pointerId),zs(t)}},n=()=>{let r=performance.now()-e.current;e.current&&r>Fi&&T.value==="on"&&ge(),e.current=0},i=r=>{r.detail===0&&(T.value==="on"?ge():zs(t))},o=T.value!=="off";return a`<${f}
    icon=${o?"send":"mic"}
    class=${o?"mic on":"mic"}
    label=${o?"Send the recording":"Record a message: hold, or click twice"}
    aria-pressed=${o}
    onPointerDown=${s}
    onPointerUp=${n}
    onClick=${i}
  />`}function Js(){let t=we(null),e=we(null);return Vi(()=>Ki(t.current,e.current),[]),a`<div class="recording" role="group" aria-label="Recording">
    <span class="recording-dot" aria-hidden="true"></span>
    <span ref=${e} class="recording-clock">0:00</span>
    <canvas ref=${t} class="meter" aria-hidden="true"></canvas>
    <button type="button" class="quiet" onClick=${_e}>Cancel</button>
  </div>`}function Ki(t,e){let s=t.getContext("2d"),n=[],i=0,o=()=>{if(i=requestAnimationFrame(o),!B)return;let{clientWidth:r,clientHeight:l}=t;for(t.width!==r&&Object.assign(t,{width:r,height:l}),n.push(B.level());n.length>r/3;)n.shift();s.clearRect(0,0,r,l),s.fillStyle=getComputedStyle(t).color,n.forEach((d,y)=>{let I=Math.max(2,d*l);s.fillRect(r-(n.length-y)*3,(l-I)/2,2,I)});let c=900-B.seconds;e.textContent=c<60?`${Math.ceil(c)}s left`:Zs(B.seconds)};return o(),()=>cancelAnimationFrame(i)}function Ys({onRecorded:t}){let e=mt.value;if(!e)return null;let s=e.why?`The recording ended after ${Zs(e.seconds)}: ${e.why}`:"Nothing was heard in this recording",n=e.why?"Send what there is, or record again":"Check that the right microphone is chosen and not muted, then record again";return a`<div class="doubtful" role="alert">
    <p>${s}. <span class="dim">${n}.</span></p>
    <span>
      <button type="button" class="quiet" onClick=${()=>{mt.value=null,t(e)}}>Send it</button>
      <button type="button" class="quiet" onClick=${()=>mt.value=null}>Discard</button>
    </span>
  </div>`}var Zs=t=>`${Math.floor(t/60)}:${String(Math.floor(t%60)).padStart(2,"0")}`;var ye={"":"as the session is set",interrupt:"stops what runs, then is answered",queue:"waits its turn",steer:"the running agent takes it in",collect:"waits, and is answered together with others"},Gi=2e4,Ji=1024*1024,tn=matchMedia("(pointer: coarse)").matches,be=new Map;function $t(t){return be.has(t)||be.set(t,sn(k(`draft.${t}`,""))),be.get(t)}function et(t,e){$t(t).value=e,ke.add(t),clearTimeout(en),en=setTimeout(Se,Yi)}var Yi=400,ke=new Set,en=0;function Se(){for(let t of ke)q(`draft.${t}`,$t(t).value);ke.clear()}addEventListener("pagehide",Se);document.addEventListener("visibilitychange",Se);function nn({conversation:t,editing:e,onEditing:s}){t.shape.value;let{session:n,log:i}=t,o=Qi(null),r=$t(n),l=to(n),c=i.question,d=i.openTurn;zi(()=>no(o.current),[r.value,T.value]),Xi(()=>{tn||o.current?.focus({preventScroll:!0})},[n,e]);let y=async M=>{M?.preventDefault();let G=r.value;!G.trim()||!m("talk")||(new TextEncoder().encode(G).length>Ji?E("The message has more than 1 MiB","Put the large part in a file and name the file in the message"):e?await Es(n,e.turn,G)&&(s(null),et(n,"")):c?U.value?await Dt(c,G)&&et(n,""):E("The supervisor is away, and answers are not kept","Answer when it is back; your words stay here"):w.isFull?E("100 messages are on their way","Wait until some are accepted"):(w.add(n,{text:G,busy:l.value}),et(n,"")))},I=M=>{M.key!=="Enter"||M.isComposing||M.shiftKey||tn&&!M.ctrlKey&&!M.metaKey||y(M)},b=M=>w.add(n,{clip:M,busy:l.value}),K=T.value==="on",pt=!!r.value.trim();return a`<form class=${`composer ${e?"editing":""}`} onSubmit=${y}>
    ${e&&a`<div class="composer-note">
      <span>Other words for turn ${e.turn.number}: they open a branch, this one stays.</span>
      <button type="button" class="quiet" onClick=${()=>s(null)}>Cancel</button>
    </div>`}
    ${c&&!e&&a`<div class="composer-note ask">What you write answers the question. Esc withdraws it.</div>`}
    <${Ys} onRecorded=${b} />
    ${K?a`<${Js} />`:a`<textarea
          ref=${o}
          rows="1"
          dir="auto"
          aria-label=${c?"Answer":"Message"}
          placeholder=${m("talk")?so(n,c,d):"This token may only watch"}
          disabled=${!m("talk")}
          value=${r.value}
          onInput=${M=>et(n,M.target.value)}
          onKeyDown=${I}
        ></textarea>`}
    <div class="composer-row">
      <${eo} mode=${l} isBusy=${!!d} set=${i.busy} />
      <span class="composer-buttons">
        ${d&&m("talk")&&a`<${f} icon="stop" class="stop" label="Stop what runs (Esc)" onClick=${()=>lt(t)} />`}
        ${(!pt||K)&&m("talk")&&a`<${Gs} onRecorded=${b} />`}
        ${!K&&a`<button type="submit" class="icon-button send" aria-label="Send" title="Send (Enter)"
            disabled=${!pt}><${Zi} /></button>`}
      </span>
    </div>
  </form>`}var Zi=()=>a`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="M12 19V5M5 12l7-7 7 7" /></svg>`,ve=new Map;function to(t){ve.has(t)||ve.set(t,sn(k(`busy.${t}`,"")));let e=ve.get(t);return{get value(){return e.value},set value(s){e.value=s,q(`busy.${t}`,s)}}}function eo({mode:t,isBusy:e,set:s}){let n=ye[t.value||s]??ye[""];return a`<label class="mode" title=${`While a turn runs, a message ${n}`}>
    <span class="mode-label">${e?"now":"while busy"}</span>
    <select value=${t.value} onChange=${i=>t.value=i.target.value} aria-label="What a message does to a running turn">
      <option value="">${s?`default (${s})`:"default"}</option>
      ${Object.keys(ye).filter(Boolean).map(i=>a`<option key=${i} value=${i}>${i}</option>`)}
    </select>
    <span class="mode-means">${n}</span>
  </label>`}function so(t,e,s){return e?e.asks==="approve"?"yes, no, or a reason":"Your answer":s?`Add to ${t}`:`Message ${t}`}function no(t){if(t){if(t.value.length>Gi){t.style.height="40dvh";return}t.style.height="auto",t.style.height=`${Math.min(t.scrollHeight,innerHeight*.4)}px`}}function on(t,e){for(let s of e){let n=Xs(s);n?E(n.message,n.hint):w.add(t.session,{clip:{blob:s,name:s.name},busy:k(`busy.${t.session}`,"")})}}import{useState as rn}from"./vendor.js";var an=3e3;function xe({message:t,onEdit:e,onWhy:s}){return!t||!(t.text||t.kind==="voice")?a`<div class="you"><p class="bubble dim">(said earlier)</p></div>`:a`<div class="you">
    <div class="bubble">
      ${t.kind==="voice"&&a`<${io} message=${t.id} />`}
      <${Ee} text=${t.text||"(clip)"} />
    </div>
    <div class="you-tools">
      ${e&&m("talk")&&a`<${f} icon="edit" label="Edit: ask this otherwise, in a branch" onClick=${()=>e(t)} />`}
      <${f} icon="why" label="Why: the history of this message" onClick=${()=>s(t.id)} />
    </div>
  </div>`}function Ee({text:t}){let[e,s]=rn(!1),n=t.length>an&&!e;return a`<${p} tag="p" class="said" of=${n?`${t.slice(0,an)}…`:t} />
    ${n&&a`<button type="button" class="quiet"
        onClick=${()=>s(!0)}>Show all ${Y(t.length)} characters</button>`}`}function io({message:t}){let[e,s]=rn(!1);return e?a`<audio class="clip" controls autoplay src=${`/api/messages/${encodeURIComponent(t)}/clip`}></audio>`:a`<button type="button" class="clip-play" onClick=${()=>s(!0)} aria-label="Play the clip">
      <span aria-hidden="true">🎙️ ▸</span>
    </button>`}function ln({message:t,onWhy:e}){return t.state==="not understood"?a`<div class="aside fault">
      <p><span aria-hidden="true">🎙️ </span>Not understood: <${p} of=${u(t.reason)} /></p>
      <p class="dim small"><${p} of=${u(t.hint)} /></p>
      <p class="aside-tools">
        ${m("talk")&&a`<button type="button" class="quiet" onClick=${()=>vs(t.id)}>Transcribe again</button>`}
        <button type="button" class="quiet" onClick=${()=>e(t.id)}>Why</button>
      </p>
    </div>`:a`<p class="aside dim">– taken back: <${p} of=${u(t.text)||"a clip"} /></p>`}var Te=6;function cn({conversation:t,onPutBack:e}){let s=t.shape.value,{log:n,session:i}=t,o=n.waiting,r=w.of(i);if(!o.length&&!r.length)return null;let l=o.length>0&&n.isHeld;return a`<section class="queue" aria-label="Waiting messages">
    ${o.length>0&&a`<header class="queue-head">
      <span class=${l?"held":"dim"}>
        ${l?"held by the interrupt until your next message":`${o.length} waiting`}
      </span>
      <span>
        ${l&&m("talk")&&a`<button type="button" class="quiet" onClick=${()=>ys(i)}>Resume</button>`}
        ${o.length>1&&m("talk")&&a`<button type="button" class="quiet" onClick=${()=>_s(i)}>Drop all</button>`}
      </span>
    </header>`}
    <ol>
      ${o.slice(0,Te).map((c,d)=>a`<${oo} key=${c.id} number=${d+1} message=${c} version=${s} session=${i} />`)}
      ${o.length>Te&&a`<li class="dim small">and ${o.length-Te} more</li>`}
      ${r.map(c=>a`<${ao} key=${c.key} item=${c} onPutBack=${e} />`)}
    </ol>
  </section>`}function oo({number:t,message:e,session:s}){let n=u(e.text)||(e.kind==="voice"?u(e.note)||"🎙️ listening …":"…");return a`<li class="waiting">
    <span class="dim" aria-hidden="true">${t}</span>
    <${p} class="waiting-words" of=${n} />
    <span class="dim small">${e.state==="transcribing"?"is transcribed":e.busy??"waits"}</span>
    ${m("talk")&&a`<${f} icon="close" label="Take this message back" onClick=${()=>ws(s,e.id)} />`}
  </li>`}function ao({item:t,onPutBack:e}){let s=t.clip?`🎙️ ${t.clip.name}`:u(t.text)||"🎙️";if(t.state==="refused")return a`<li class="waiting refused" role="alert">
      <div>
        <${p} class="waiting-words" of=${s} />
        <p class="fault small">Not taken: ${t.fault}. ${ht(t.hint)}</p>
      </div>
      <span class="waiting-tools">
        <button type="button" class="quiet" onClick=${()=>w.again(t.key)}>Send again</button>
        ${!t.clip&&a`<button type="button" class="quiet" onClick=${()=>e(t)}>Edit</button>`}
        <${f} icon="close" label="Discard" onClick=${()=>w.remove(t.key)} />
      </span>
    </li>`;let n=t.state==="accepted"?"accepted":U.value?"sending":"kept, is sent when the service is back";return a`<li class="waiting">
    <span class="dim" aria-hidden="true">↑</span>
    <${p} class="waiting-words" of=${s} />
    <span class="dim small">${n}</span>
    ${!U.value&&t.state==="sending"&&a`<${f} icon="close" label="Do not send this" onClick=${()=>w.remove(t.key)} />`}
  </li>`}import{MarkdownAttr as gt,MarkdownToken as h,markdownEnd as ro,markdownParser as lo,markdownWrite as co}from"./vendor.js";var uo=500,po=3e5,ho=1e4,fo=4e3,un=512,mo=16,$o={[h.Blockquote]:"blockquote",[h.Paragraph]:"p",[h.Line_Break]:"br",[h.Rule]:"hr",[h.Italic_Ast]:"em",[h.Italic_Und]:"em",[h.Strong_Ast]:"strong",[h.Strong_Und]:"strong",[h.Strike]:"s",[h.Code_Inline]:"code",[h.Raw_URL]:"a",[h.Link]:"a",[h.Image]:"a",[h.List_Unordered]:"ul",[h.List_Ordered]:"ol",[h.List_Item]:"li",[h.Table_Row]:"tr",[h.Equation_Block]:"code",[h.Equation_Inline]:"code"},dn=[h.Heading_1,h.Heading_2,h.Heading_3,h.Heading_4,h.Heading_5,h.Heading_6],go=new Set(["p","h3","h4","h5","h6","li","blockquote"]),pn=2,jt=class{constructor(e){this._root=e,this._pieces=new yt,this._parsed=0,this._line=0,this._plain=null,this._parser=lo(wo(e))}write(e){this._write(this._pieces.take(e))}end(){this._write(this._pieces.end()),this._plain||ro(this._parser)}_write(e){for(let s=0;s<e.length;s+=un){let n=e.slice(s,s+un);if(this._plain){this._writePlain(n);continue}co(this._parser,n),this._parsed+=n.length;let i=n.lastIndexOf(`
`);this._line=i<0?this._line+n.length:n.length-i,(this._parsed>po||this._line>ho||this._parser.pending.length>uo)&&this._writePlain(this._parser.pending)}}_writePlain(e){(!this._plain||this._plain.textContent.length>fo)&&(this._plain=this._root.appendChild(R("p","plain"))),this._plain.append(e)}};function wo(t){return{data:{nodes:[t],level:pn},add_token:_o,end_token:vo,add_text:ko,set_attr:So}}function _o(t,e){let s=t.nodes.at(-1);if(t.nodes.length>mo){t.nodes.push(s);return}let n=yo(e,s,t);s.append(n),t.nodes.push(n.querySelector(":scope > pre > code, :scope > table")??n)}function yo(t,e,s){switch(t){case h.Code_Block:case h.Code_Fence:return Eo();case h.Table:return To();case h.Table_Cell:return R(e.previousSibling?"td":"th");case h.Checkbox:return R("span","checkbox");case h.Image:return R("a","image")}let n=$o[t]??(dn.includes(t)?bo(t,s):"span"),i=R(n);return go.has(n)&&(i.dir="auto"),i}function bo(t,e){return e.level=Math.min(dn.indexOf(t)+1+pn,e.level+1,6),`h${e.level}`}function vo(t){t.nodes.pop()}function ko(t,e){t.nodes.at(-1).append(e)}function So(t,e,s){let n=t.nodes.at(-1);if(e===gt.Href||e===gt.Src)xo(n,s);else if(e===gt.Lang){let i=n.closest?.(".code")?.querySelector(".code-language");i&&(i.textContent=s.slice(0,40))}else e===gt.Checked?n.classList.add("checked"):e===gt.Start&&(n.start=Number.parseInt(s,10)||1)}function xo(t,e){let s=Ve(e);if(!s){t.textContent!==e&&t.append(` (${e})`);return}Object.assign(t,{href:s,target:"_blank",rel:"noopener noreferrer nofollow",title:s})}function Eo(){let t=R("div","code"),e=t.appendChild(R("div","code-bar"));e.appendChild(R("span","code-language"));let s=e.appendChild(R("button","code-copy"));s.type="button",s.textContent="Copy";let n=t.appendChild(R("pre"));return n.tabIndex=0,n.dir="ltr",n.appendChild(R("code")),t}function To(){let t=R("div","table");return t.tabIndex=0,t.setAttribute("role","region"),t.setAttribute("aria-label","table"),t.appendChild(R("table")),t}function R(t,e=""){let s=document.createElement(t);return e&&(s.className=e),s}import{effect as Mo,useLayoutEffect as hn,useRef as fn}from"./vendor.js";var Co=8192,Ao=8,qo=1500;function Ce({text:t,isWhole:e,growing:s=null}){let n=fn(null),i=fn(null);return hn(()=>{if(i.current??=new Me(n.current),s)return Mo(()=>i.current.set(s(),!1));i.current.set(t,e)},[t,e,s===null]),hn(()=>()=>i.current?.stop(),[]),a`<div class="words" ref=${n} onClick=${No}></div>`}var Me=class{constructor(e){this._frame=e,this._timer=0,this._begin("")}set(e,s){if(this._isEnded||e.length<this._written){if(this._isEnded&&e===this._text)return;this._begin(e)}this._text=e,this._isWhole=s,this._go()}stop(){clearTimeout(this._timer)}_begin(e){this.stop(),this._frame.replaceChildren(),this._writer=new jt(this._frame),this._text=e,this._written=0,this._isEnded=!1}_go(){this.stop();let e=performance.now()+Ao;for(;this._written<this._text.length;){let s=this._text.slice(this._written,this._written+Co);if(this._writer.write(s),this._written+=s.length,performance.now()>e&&this._written<this._text.length){this._timer=setTimeout(()=>this._go());return}}this._isWhole&&!this._isEnded&&(this._isEnded=!0,this._writer.end())}};async function No(t){let e=t.target.closest(".code-copy");if(!e)return;let s=e.closest(".code").querySelector("code"),n=await Wt(s.textContent);n||getSelection().selectAllChildren(s),e.textContent=n?"Copied":"Selected",setTimeout(()=>e.textContent="Copy",qo)}import{useState as Oo}from"./vendor.js";function $n({question:t}){return a`<div class=${`question ${t.state}`} role="group" aria-label="Question">
    <${Ae} question=${t} />
    ${t.state==="open"&&m("talk")&&a`<${qe} question=${t} />`}
    ${t.state==="answered"&&a`<p class="question-answer"><span aria-hidden="true">❯ </span><${p} of=${t.answer} />
          ${" "}<span class="dim small">by ${t.by}</span></p>`}
    ${t.state==="withdrawn"&&a`<p class="dim small">withdrawn with its turn</p>`}
  </div>`}function Ae({question:t}){let[e,...s]=wt(t)?t.text.split(`
`):[t.text];return a`<${p} tag="div" class="question-text" of=${e} />
    ${s.length>0&&a`<${p} tag="pre" class="question-call" of=${s.join(`
`)} />`}`}function qe({question:t}){let[e,s]=Oo(!1),n=t.choices?.length?t.choices:wt(t)?["yes","no"]:[],i=async o=>{s(!0),await Dt(t,o)||s(!1)};return a`<div class="choices">
    ${n.map(o=>a`<button
        key=${o}
        type="button"
        class=${wt(t)&&o==="no"?"choice deny":"choice"}
        disabled=${e}
        onClick=${()=>i(o)}
      >
        <${p} of=${mn[o]&&wt(t)?mn[o]:o} />
      </button>`)}
    ${!wt(t)&&a`<span class="dim small">or answer in your own words</span>`}
  </div>`}var wt=t=>(t.asks??t.kind)==="approve",mn={yes:"Approve",no:"Deny",always:"Always in this turn"};import{useEffect as Ro,useState as Ne}from"./vendor.js";var Io={running:"·",ok:"✔",failed:"✘",cut:"■"},Lo={running:"is running",ok:"finished",failed:"failed",cut:"was stopped"},Bo=2e4;function Oe({tool:t,turn:e}){let[s,n]=Ne(!1),i=[t.ended,`${Y(t.ms)} ms`].filter(Boolean).join(" · "),o={running:"",cut:"stopped"}[t.state]??i;return a`<div class=${`tool ${t.state}`}>
    <button type="button" class="tool-line" aria-expanded=${s} onClick=${()=>n(!s)}>
      <span class="tool-sign" aria-hidden="true">${Io[t.state]}</span>
      <span class="tool-name">${D(t.name)}</span>
      <span class="unseen">${Lo[t.state]}</span>
      <span class="tool-summary" dir="auto">${xt(t.summary)}</span>
      <span class="tool-facts">${o}</span>
      <${O} name="fold" />
    </button>
    ${t.state==="running"&&t.note&&!s&&a`<pre class="tool-note">${D(t.note)}</pre>`}
    ${s&&a`<${Do} tool=${t} turn=${e} state=${t.state} />`}
  </div>`}function Do({tool:t,turn:e,state:s}){let[n,i]=Ne(null);Ro(()=>{if(t.arguments!==void 0)return i(t);let l=!0;return $(async()=>{let{attempts:c}=await xs(e,t.call);l&&i(c.find(d=>d.attempt===t.attempt)??c[0])}),()=>l=!1},[s]);let o=Fe(n?.arguments??t.summary),r=n?.result??t.note;return a`<div class="tool-details">
    <dl>
      ${o.map(([l,c])=>a`<div key=${l}><dt>${D(l)||"arguments"}</dt><dd><pre tabindex="0">${D(c)}</pre></dd></div>`)}
    </dl>
    <${Po} text=${r} isRunning=${s==="running"} isRead=${!!n} />
  </div>`}function Po({text:t,isRunning:e,isRead:s}){let[n,i]=Ne(!1);if(!t)return a`<p class="dim small">${e?"no output yet":s?"no output":"reading …"}</p>`;let o=n?t:t.slice(0,Bo);return a`<div class="tool-result">
    <p class="dim small">${e?"last output":"result"}</p>
    <pre tabindex="0" dir="auto">${D(o)}</pre>
    ${o.length<t.length&&a`<button type="button" class="quiet"
          onClick=${()=>i(!0)}>Show all ${Y(t.length)} characters</button>`}
  </div>`}import{useEffect as Wo,useState as Uo}from"./vendor.js";function gn({conversation:t,turn:e,onEdit:s,onWhy:n}){let i=t.version(e.id).value,{messages:o}=t.log,r=l=>s(e,l);return a`<article class=${`turn ${e.state}`} aria-label=${`Turn ${e.number}`} data-turn=${e.id}>
    <h2 class="unseen">Turn ${e.number}</h2>
    ${e.messages.map(l=>a`<${xe} key=${l} message=${o.get(l)} version=${i} onEdit=${r} onWhy=${n} />`)}
    <div class="answer">
      ${e.pieces().map(({key:l,text:c,mark:d,isLast:y})=>d?a`<${jo} key=${l} mark=${d} version=${i} turn=${e.id} messages=${o} onWhy=${n} />`:a`<${Ho} key=${l} text=${c} conversation=${t} turn=${e} version=${i} isLast=${y} />`)}
      ${e.lost&&a`<p class="lost">⟳ attempt ${e.attempt} was lost: <${p} of=${u(e.lost)} />; it goes on from here</p>`}
      ${e.stuck&&a`<p class="lost">■ it <${p} of=${u(e.stuck)} /></p>`}
      ${e.isOpen?e.state!=="asking"&&a`<${Vo} turn=${e} conversation=${t} version=${i} />`:a`<${Ko} turn=${e}
          version=${i} onWhy=${n} />`}
    </div>
  </article>`}function Ho({text:t,conversation:e,turn:s,isLast:n}){let i=()=>(e.tailVersion(s.id).value,s.tail);return a`<${Ce} text=${t} isWhole=${!s.isOpen} growing=${n&&s.isOpen?i:null} />`}function jo({mark:t,version:e,turn:s,messages:n,onWhy:i}){return t.kind==="tool"?a`<${Oe} tool=${t} version=${e} turn=${s} />`:t.kind==="question"?a`<${$n} question=${t} version=${e} />`:a`<${xe} message=${n.get(t.message)} version=${e} onWhy=${i} />`}function Vo({turn:t,conversation:e}){let[s,n]=Uo(Date.now());Wo(()=>{let o=setInterval(()=>n(Date.now()),1e3);return()=>clearInterval(o)},[]);let i=t.openedAt?Math.max(0,Math.floor(s/1e3-t.openedAt)):0;return a`<p class="life">
    <span class="pulse" aria-hidden="true"></span>
    <span>${A(i)} · <${p} of=${Fo(t,e)} /></span>
    ${U.value&&m("talk")&&a`<span class="life-hint">Esc interrupts</span>`}
  </p>`}function Fo(t,e){if(!U.value)return"goes on when the supervisor is back";if(e.interrupting.value===t.id)return"interrupting";if(t.state==="queued")return"accepted, waits for a worker";let s=t.runningTools;return s.length>1?`${s.length} tools are running`:t.note?u(t.note).slice(0,200):s.length?`${u(s[0].name)} is running`:"answering"}function Ko({turn:t,onWhy:e}){let s=a`<${f} icon="why" label="Why: the history of this turn" onClick=${()=>e(t.id)} />`,n=a`<${f} icon="copy" label="Copy the answer" onClick=${()=>Wt(t.text)} />`,i=m("talk")&&a`<button type="button" class="quiet" onClick=${()=>bs(t.id)}>Retry</button>`;if(t.state==="done"){let o=St(t.ending);return a`${o&&a`<p class="remark">! ${o}</p>`}
      <p class="ending"><span>${Qe(t)}</span><span class="ending-tools">${n}${s}</span></p>`}return t.state==="interrupted"?a`<p class="ending cut">
      <span><span aria-hidden="true">■ </span>cut off ${z(t.endedAt)} · ${j(t.ending)}</span>
      <span class="ending-tools">${i}${s}</span>
    </p>`:a`<div class="ending fault">
    <div>
      <p><span aria-hidden="true">✘ </span>failed ${z(t.endedAt)} · <${p} of=${u(t.ending.error??"")} /></p>
      ${t.ending.hint&&a`<p class="dim small">hint: <${p} of=${u(t.ending.hint)} /></p>`}
    </div>
    <span class="ending-tools">${i}${s}</span>
  </div>`}function wn({row:t}){return a`<article class="turn past" aria-label="Earlier turn">
    ${t.messages.map((e,s)=>a`<div class="you" key=${s}><div class="bubble"><${Ee} text=${e.text} /></div></div>`)}
    <div class="answer">
      ${(t.tools??[]).map(e=>a`<${Oe} key=${`${e.attempt} ${e.call}`} tool=${Xo(e)} turn="" />`)}
      <${Ce} text=${t.text} isWhole=${!0} />
    </div>
  </article>`}var Xo=t=>({...t,summary:t.arguments,state:t.ok?"ok":"failed",ms:0,ended:"",note:""});import{useEffect as Ie,useLayoutEffect as bn,useRef as Re,useState as Vt}from"./vendor.js";var _n=40,zo=80;function vn({session:t,onMenu:e,onWhy:s}){let n=It(t),[i,o]=Vt(null),[r,l]=Vt(!1);return Ie(()=>o(null),[t]),a`<main class="talk" onDragOver=${b=>{!b.dataTransfer?.types.includes("Files")||!m("talk")||(b.preventDefault(),l(!0))}} onDragLeave=${()=>l(!1)} onDrop=${b=>{b.preventDefault(),l(!1),on(n,b.dataTransfer.files)}}>
    <${Qo} conversation=${n} onMenu=${e} />
    <${Jo} key=${t} conversation=${n} onEdit=${(b,K)=>{o({turn:b,message:K}),et(t,K.text)}} onWhy=${s} />
    <div class="bottom">
      <${cn} conversation=${n} onPutBack=${b=>{et(t,[$t(t).value,b.text].filter(Boolean).join(`
`)),w.remove(b.key)}} />
      <${nn} conversation=${n} editing=${i} onEditing=${o} />
    </div>
    ${r&&a`<div class="dropping" aria-hidden="true">Drop a sound file: it is sent, and its words are shown</div>`}
  </main>`}function Qo({conversation:t,onMenu:e}){t.shape.value;let{session:s,log:n}=t,i=fe(s),o=n.openTurn;return a`<header class="head">
    <${f} icon="menu" class="menu" label="Sessions" onClick=${e} />
    <div class="head-title">
      <h1><${p} of=${s} /></h1>
      <p class="small dim">${Go(n)}</p>
    </div>
    ${i.length>1&&a`<label class="branches">
      <${O} name="branch" />
      <span class="unseen">Branch</span>
      <select value=${s} onChange=${r=>V("talk",r.target.value)}>
        ${i.map(r=>a`<option key=${r} value=${r}>${r===ft(s)?`${r} (first)`:r}</option>`)}
      </select>
    </label>`}
    ${o&&m("talk")&&a`<button type="button" class="stop-button" onClick=${()=>lt(t)}><${O} name="stop" /> Stop</button>`}
  </header>`}function Go({openTurn:t,isHeld:e,lastTurn:s}){return t?{queued:"queued",asking:"asks you"}[t.state]??"running":e?"held":s?.agent??""}function Jo({conversation:t,onEdit:e,onWhy:s}){let n=t.shape.value,{log:i}=t,[o,r]=Vt(_n),l=Re(null),c=sa(l,t);ea(t);let d=w.of(t.session).length,y=Re(0);Ie(()=>{d>y.current&&c.toEnd(),y.current=d},[d]);let I=i.items.slice(-o),b=i.items.length>I.length||t.hasEarlier,K=async()=>{let st=l.current.scrollHeight-l.current.scrollTop;i.items.length<=o&&await t.readEarlier().catch(()=>{}),r(o+_n),requestAnimationFrame(()=>l.current.scrollTop=l.current.scrollHeight-st)},pt=b?[]:t.past.value,M=!I.length&&!pt.length,G=`scroll ${c.value?"following":""}`;return a`<div class=${G} ref=${l} tabindex="0" role="region" aria-label="Conversation">
    <div class="column">
      ${b&&a`<button type="button" class="quiet wide" disabled=${t.isReadingEarlier.value}
          onClick=${K}>⋯ what was said earlier</button>`}
      ${pt.map((st,Cn)=>a`<${wn} key=${`past ${Cn}`} row=${st} />`)}
      ${!b&&i.begun?.from&&a`<p class="divider">
          <a href=${`#/talk/${encodeURIComponent(i.begun.from)}`}>${Yo(i.begun)}</a>
        </p>`}
      ${M&&a`<${ta} conversation=${t} />`}
      ${I.map(st=>a`<${Zo} key=${st.id} item=${st} version=${n} conversation=${t} onEdit=${e} onWhy=${s} />`)}
    </div>
    <div class="end"></div>
    ${!c.value&&a`<button type="button" class="to-end" onClick=${c.toEnd}><${O} name="down" /> newest</button>`}
  </div>`}function Yo({from:t,through:e}){return`branched from ${t}, ${e?`after turn ${e}`:"at its beginning"}`}function Zo({item:t,version:e,conversation:s,onEdit:n,onWhy:i}){return t instanceof P?a`<${gn} conversation=${s} turn=${t} shape=${e} onEdit=${n} onWhy=${i} />`:t.gap!==void 0?a`<p class="aside dim">⋯ the journal was repaired; ${t.gap} events are missing</p>`:a`<${ln} message=${t} version=${e} onWhy=${i} />`}function ta({conversation:t}){let e=t.state.value;return e!=="new"?a`<div class="greeting dim">${e==="following"?"":"reading …"}</div>`:a`<div class="greeting">
    <h2><${p} of=${t.session} /> is new</h2>
    <p class="dim">
      Say something. It is answered by a process of its own, which you can stop at any moment, with a proof that nothing of it
      is left.
    </p>
  </div>`}function ea(t){let e=()=>{document.hidden||$s(t.session,t.log.seq)};bn(e),Ie(()=>(document.addEventListener("visibilitychange",e),()=>document.removeEventListener("visibilitychange",e)),[t])}function sa(t,e){let[s,n]=Vt(!0),i=Re(!0),o=()=>{i.current=!0,n(!0),t.current.scrollTop=t.current.scrollHeight};return bn(()=>{let r=t.current,l=()=>{i.current=yn(r)<zo,n(i.current)},c=new ResizeObserver(()=>{i.current&&yn(r)>=1&&(r.scrollTop=r.scrollHeight)});return c.observe(r.firstElementChild),c.observe(r),r.addEventListener("scroll",l,{passive:!0}),r.scrollTop=r.scrollHeight,()=>{c.disconnect(),r.removeEventListener("scroll",l)}},[e]),{value:s,toEnd:o}}var yn=({scrollHeight:t,scrollTop:e,clientHeight:s})=>t-e-s;import{effect as Ia,render as La,useEffect as Ba,useState as De}from"./vendor.js";import{useEffect as na,useState as Le}from"./vendor.js";var ia=["","running","queued","asking","done","interrupted","failed","poison"],oa=30,aa=3e3,ra={process:15,loop:15,progress:120};function kn({onMenu:t,onWhy:e}){let s=ne.value;return a`<main class="watch">
    <header class="head">
      <${f} icon="menu" class="menu" label="Sessions" onClick=${t} />
      <div class="head-title"><h1>Watch</h1><p class="small dim">${s?la(s.status):"reading …"}</p></div>
      ${s&&a`<${ua} status=${s.status} />`}
    </header>
    <div class="scroll" tabindex="0" role="region" aria-label="The service">
      <div class="wide-column">
        ${s&&a`<${ca} status=${s.status} /><${da} status=${s.status} workers=${s.workers} />`}
        <${pa} />
        ${s&&a`<${ha} workers=${s.workers} /><${ga} services=${s.services} />`}
        <${wa} onWhy=${e} />
      </div>
    </div>
  </main>`}function la({state:t,version:e,uptime_seconds:s,model:n}){return`${t} · version ${e} · up ${A(s)} · ${u(n)}`}function ca({status:t}){return(t.hints??[]).map(e=>a`<p class="hint" key=${e}>! <${p} of=${u(e)} /></p>`)}function ua({status:t}){let[e,s]=Le(null),n=e??t.seats,i=async o=>{let r=Math.max(1,n+o);s(r),await As(r),s(null)};return a`<div class="controls">
    <span class="stepper" role="group" aria-label="Seats">
      <button type="button" aria-label="One seat less" disabled=${n<=1} onClick=${()=>i(-1)}>−</button>
      <span>${n} seats</span>
      <button type="button" aria-label="One seat more" onClick=${()=>i(1)}>+</button>
    </span>
    ${t.draining?a`<button type="button" class="quiet strong" onClick=${Cs}>Undrain</button>`:a`<button type="button" class="quiet" title="Start no turn from now on; what runs is finished"
              onClick=${Ms}>Drain</button>`}
  </div>`}function da({status:t,workers:e}){let s=e.reduce((i,o)=>i+(o.memory_bytes??0),0),n=e.reduce((i,o)=>i+(o.cpu_percent??0),0);return a`<section class="numbers" aria-label="Numbers">
    <${ut} name="busy" label="busy seats" value=${`${t.busy} of ${t.seats}`} />
    <${ut} name="waiting" label="queued and waiting" value=${t.queued+t.waiting} />
    <${ut} name="ended" label="turns ended" value=${Y(t.turns_ended)} />
    <${ut} name="cpu" label="CPU of workers" value=${`${n.toFixed(0)} %`} />
    <${ut} name="memory" label="memory of workers" value=${Qt(s)} />
    <${ut} name="lag" label="lag of the loop" value=${`${(t.lag_ms??0).toFixed(1)} ms`} />
  </section>`}function ut({name:t,label:e,value:s}){return a`<div class="number">
    <span class="number-value">${s}</span>
    <span class="small dim">${e}</span>
    <svg class="spark" viewBox="0 0 120 28" preserveAspectRatio="none" aria-hidden="true">
      <polyline points=${rs(ie.of(t),120,28)} />
    </svg>
  </div>`}function pa(){let t=F.value;return t.length?a`<section aria-label="Questions">
    <h2>Questions</h2>
    <ul class="cards">
      ${t.map(e=>a`<li class="question open" key=${e.question}>
          <p class="small dim"><a href=${`#/talk/${encodeURIComponent(e.session)}`}>${e.session}</a> · asked ${z(e.at)}</p>
          <${Ae} question=${e} />
          ${m("talk")&&a`<${qe} question=${e} />`}
        </li>`)}
    </ul>
  </section>`:null}function ha({workers:t}){return a`<section aria-label="Seats">
    <h2>Seats</h2>
    <ul class="seats">
      ${t.map(e=>a`<${fa} key=${e.seat} worker=${e} />`)}
    </ul>
  </section>`}function fa({worker:t}){let e=[t.pid&&`pid ${t.pid}`,t.memory_bytes!==null&&Qt(t.memory_bytes),t.cpu_percent!==null&&`${t.cpu_percent?.toFixed(0)} % CPU`,t.processes>1&&`${t.processes} processes`].filter(Boolean);return a`<li class=${`seat ${t.state}`}>
    <div class="seat-head">
      <span class="seat-number">${t.seat}</span>
      <span class=${`state ${t.state}`}>${t.state}</span>
      <span class="seat-session">${t.session&&a`<a href=${`#/talk/${encodeURIComponent(t.session)}`}><${p} of=${t.turn??t.session} /></a>`}</span>
      ${t.turn&&m("talk")&&a`<button type="button" class="quiet stop-text" onClick=${()=>$a(t)}><${O} name="stop" /> Stop</button>`}
    </div>
    <div class="signs">
      ${["process","loop","progress"].map(s=>a`<${ma} key=${s} name=${s} seconds=${t[s]} />`)}
    </div>
    <p class="small dim">${e.join(" · ")}${e.length?" · ":""}${A(Math.floor(t.age_seconds))} old</p>
    ${t.words&&a`<p class="small"><${p} of=${u(t.words)} /></p>`}
  </li>`}function ma({name:t,seconds:e}){let s=typeof e=="number",n=s?e>ra[t]?"late":"fresh":"none",i=s?`${t} ${A(Math.round(e))}`:`${t} –`;return a`<span class=${`sign ${n}`} title=${`the last sign of its ${t}`}>${i}</span>`}async function $a({session:t,turn:e}){let s=await $(()=>v(`${S(t)}/interrupt`,{json:{expect_turn:e}}));s?.turn&&E(`${s.turn} interrupted: ${j(s)}`,"","plain")}function ga({services:t}){return t.length?a`<section aria-label="Services">
    <h2>Services</h2>
    <ul class="services">
      ${t.map(e=>a`<li key=${e.service}>
          <span class=${`state ${e.state}`}>${e.state}</span>
          <strong>${e.service}</strong>
          <${p} class="dim small" of=${u([e.detail,e.address].filter(Boolean).join(" · "))} />
          <span class="dim small">
            ${[e.pid&&`pid ${e.pid}`,e.restarts&&J(e.restarts,"restart")].filter(Boolean).join(" · ")}
          </span>
          ${e.hint&&a`<span class="small">! <${p} of=${u(e.hint)} /></span>`}
        </li>`)}
    </ul>
  </section>`:null}function wa({onWhy:t}){let[e,s]=Le(""),[n,i]=Le(null);return na(()=>{let o=!0,r=()=>$(async()=>{if(document.hidden)return;let c=await C(`/api/turns?limit=${oa}${e?`&state=${e}`:""}`);o&&i(c.turns)});r();let l=setInterval(r,aa);return()=>{o=!1,clearInterval(l)}},[e]),a`<section aria-label="Turns">
    <div class="section-head">
      <h2>Turns</h2>
      <label class="small dim">
        state${" "}
        <select value=${e} onChange=${o=>s(o.target.value)}>
          ${ia.map(o=>a`<option key=${o} value=${o}>${o||"all"}</option>`)}
        </select>
      </label>
    </div>
    ${n&&!n.length&&a`<p class="dim">none</p>`}
    <ul class="turns">
      ${(n??[]).map(o=>a`<li key=${o.turn}>
          <button type="button" class="turn-row" onClick=${()=>t(o.turn)}>
            <span class=${`state ${o.state}`}>${o.state}</span>
            <${p} class="turn-name" of=${o.turn} />
            <span class="dim small">${_a(o)}</span>
            <${O} name="why" />
          </button>
        </li>`)}
    </ul>
  </section>`}function _a(t){let e=t.opened_at??t.at,s=t.ended_at;return[e&&z(e),e&&s&&A(s-e),t.attempts>1&&`${t.attempts} attempts`,t.pid&&`worker ${t.worker}`].filter(Boolean).join(" · ")}var ya=160;function Sn([t,...e]){return[...e.map(n=>({at:Xe(n.at),words:u((ka[n.type]??va)(n))})),{at:"",words:u(ba(t))}]}function ba(t){let e=t.waits?`: ${t.waits}`:"";if(t.kind==="turn"){let s=t.attempts>1?` after ${t.attempts} attempts`:"";return`turn ${t.id} is ${t.state}${s}${e}`}return t.turn?`message ${t.id} was taken by turn ${t.turn}, which is ${t.turn_state}${e}`:`message ${t.id} is ${t.state}${e}`}var dt=t=>t?`: ${X(u(t),ya)}`:"";function va({type:t,seq:e,session:s,at:n,...i}){let o=Object.entries(i).map(([r,l])=>`${r}=${X(u(JSON.stringify(l)),40)}`);return`${t} ${o.join(" ")}`}var ka={"session.begun":t=>`the session began with ${J(t.turns,"turn")}${t.from?` of ${t.from}`:""}`,"message.accepted":t=>`message ${t.message} arrived (${t.kind}, ${t.busy})${dt(t.text)}`,"message.dropped":t=>`message ${t.message} was dropped by ${t.by}`,"transcript.ready":t=>`message ${t.message} was understood${dt(t.text)}`,"transcript.failed":t=>`message ${t.message} could not be understood: ${t.reason}`,"turn.opened":t=>`turn ${t.turn} opened to answer ${t.messages.join(", ")}${t.agent?` by agent ${t.agent}`:""}`,"turn.joined":t=>`before it began, turn ${t.turn} took in ${t.messages.join(", ")} as well`,"attempt.opened":t=>`attempt ${t.attempt} began on worker ${t.worker} (pid ${t.pid}${t.level?`, sandbox level ${t.level}`:""})`,"attempt.stuck":t=>`attempt ${t.attempt} ${vt(t)}`,"attempt.lost":t=>`attempt ${t.attempt} was lost: ${t.reason}`,"tool.started":t=>`tool ${t.name} started${dt(xt(t.summary))}`,"tool.finished":t=>{let e=kt(t);return`tool ${t.name} ${t.ok?"finished":"failed"}${e?` (${e})`:""} after ${t.ms} ms`},"question.asked":t=>`it asked a question (${t.question})${dt(t.text)}`,"question.answered":t=>`the question ${t.question} was answered${dt(t.text)}`,"turn.steered":t=>`the running agent took in message ${t.message}`,"turn.done":t=>{let e=St(t),s=J(t.usage?.output_tokens??0,"token");return`turn ${t.turn} was answered${t.model?` by ${t.model}`:""} (${s}${e?`; ${e}`:""})${dt(t.text)}`},"turn.interrupted":t=>`turn ${t.turn} was interrupted by ${t.by}, ${j(t)}`,"turn.failed":t=>`turn ${t.turn} failed: ${t.error} (hint: ${t.hint})`};var Be=new Set(["turn.done","turn.failed","turn.interrupted"]);function En(t,e){let s=t.filter(l=>l.type&&l.at);if(!s.length)return{begin:e,end:e,spans:[]};let n=s[0].at,o=s.findLast(l=>Be.has(l.type))?.at??Math.max(e,s.at(-1).at),r=[...Sa(s,o),...Ta(s,o),...Ma(s,o)];return{begin:n,end:o,spans:[...r,...Ca(r,o)]}}function Sa(t,e){let s=[],n=null,i="waiting",o=r=>{n!==null&&r>n&&s.push({lane:"waiting",kind:i,label:Ea[i],begin:n,end:r}),n=null};for(let{type:r,at:l}of t)r==="attempt.opened"||Be.has(r)?o(l):r==="question.asked"?(o(l),[n,i]=[l,"asking"]):n===null&&xa.has(r)?[n,i]=[l,"waiting"]:r==="question.answered"&&(o(l),[n,i]=[l,"waiting"]);return n!==null&&o(e),s}var xa=new Set(["message.accepted","turn.opened","attempt.lost"]),Ea={waiting:"waits for a worker",asking:"waits for an answer"};function Ta(t,e){let s=[],n=null;for(let i of t)i.type==="attempt.opened"?(n&&(n.end=i.at),n={lane:"attempts",kind:"attempt",label:`attempt ${i.attempt}, worker ${i.worker}`,begin:i.at,end:e},s.push(n)):n&&(i.type==="attempt.lost"||Be.has(i.type)||i.type==="question.asked"&&!i.holds)&&(n.end=i.at,i.type==="attempt.lost"&&(n.kind="lost"),n=null);return s}function Ma(t,e){let s=new Map,n=[];for(let i of t)if(i.type==="tool.started"){let o={lane:"tools",kind:"tool",label:i.name,begin:i.at,end:e};s.set(i.call,o),n.push(o)}else if(i.type==="tool.finished"&&s.has(i.call))Object.assign(s.get(i.call),{end:i.at,kind:i.ok?"tool":"failed"}),s.delete(i.call);else if(i.type==="attempt.lost"||i.type==="question.asked"){for(let o of s.values())Object.assign(o,{end:i.at,kind:"cut"});s.clear()}return n}function Ca(t,e){let s=t.filter(i=>i.lane==="tools").sort((i,o)=>i.begin-o.begin),n=[];for(let i of t.filter(o=>o.lane==="attempts")){let o=i.begin;for(let r of s)r.begin>=i.end||r.end<=o||(r.begin>o&&n.push(xn(o,r.begin)),o=Math.max(o,r.end));i.end>o&&n.push(xn(o,Math.min(i.end,e)))}return n}var xn=(t,e)=>({lane:"words",kind:"words",label:"model",begin:t,end:e});import{useEffect as Aa,useState as qa}from"./vendor.js";var Na=["waiting","attempts","tools","words"];function Tn({id:t,onClose:e}){let[s,n]=qa(null);return Aa(()=>{$(async()=>n((await(t.includes("/")?ks(t):Ss(t))).rows)).then(i=>i)},[t]),a`<${Pt} title=${`Why: ${t}`} class="why" onClose=${e}>
    ${s?a`<${Oa} events=${s.slice(1)} />
          <ol class="story">
            ${Sn(s).map(({at:i,words:o},r)=>a`<li key=${r}><time>${i}</time><${p} of=${o} /></li>`)}
          </ol>`:a`<p class="dim">reading …</p>`}
  <//>`}function Oa({events:t}){let{begin:e,end:s,spans:n}=En(t,Date.now()/1e3),i=Math.max(s-e,.001),o=r=>(r-e)/i*100;return a`<figure class="timeline">
    ${Na.map(r=>{let l=n.filter(c=>c.lane===r);return a`<div class="lane" key=${r}>
        <span class="lane-name small dim">${r}</span>
        <span class="lane-track">
          ${l.map((c,d)=>a`<span
              key=${d}
              class=${`span ${c.kind}`}
              style=${{insetInlineStart:`${o(c.begin)}%`,width:`max(2px, ${o(c.end)-o(c.begin)}%)`}}
              title=${`${c.label} · ${A(c.end-c.begin)}`}
            ></span>`)}
        </span>
        <span class="lane-sum small">${l.length?Ra(l):""}</span>
      </div>`})}
    <figcaption class="small dim">${A(i)} from the first step to the last</figcaption>
  </figure>`}function Ra(t){let e=t.reduce((s,n)=>s+n.end-n.begin,0);return e<1?`${Math.round(e*1e3)} ms`:A(e<10?Math.round(e*10)/10+.001:e)}var Da=2e3;function Pa(){return x.value===null?a`<main class="login"><p class="dim">connecting …</p></main>`:x.value?a`<${Wa} />`:a`<${Is} /><${Mn} />`}function Wa(){let[t,e]=De(!1),[s,n]=De(null),[i,o]=De(!1),{view:r,session:l}=_.value;return Ba(()=>{let c=d=>Va(d,{isSideOpen:t,setSideOpen:e,setHelp:o});return addEventListener("keydown",c),()=>removeEventListener("keydown",c)},[t]),a`<div class=${`app ${t?"side-open":""}`}>
    <a class="skip" href="#content" onClick=${Ua}>To the conversation</a>
    <aside class="side" aria-label="Sessions and settings">
      <${Ks} onChosen=${()=>e(!1)} onHelp=${()=>o(!0)} />
    </aside>
    <div class="shade" onClick=${()=>e(!1)}></div>
    <div class="content" id="content">
      <${ja} />
      ${r==="watch"?a`<${kn} onMenu=${()=>e(!0)} onWhy=${n} />`:a`<${vn} session=${l} onMenu=${()=>e(!0)} onWhy=${n} />`}
    </div>
    <${Mn} />
    ${s&&a`<${Tn} id=${s} onClose=${()=>n(null)} />`}
    ${i&&a`<${Ns} onClose=${()=>o(!1)} />`}
    <div class="unseen" role="status" aria-live="polite">${oe}</div>
  </div>`}function Ua(t){t.preventDefault(),document.querySelector(".content .scroll")?.focus()}var Ha={away:"The gateway does not answer. What you see stays; what you write is kept and sent when it is back.",waiting:"The supervisor is away. What you see stays; what you write is kept and sent when it is back.",back:"Connected again. Nothing was lost."};function ja(){let t=Ha[N.value];return a`<div class=${`banner ${t?N.value:"none"}`} role="status">${t??""}</div>`}function Mn(){return a`<div class="toasts" role="region" aria-label="Notices">
    ${at.value.map(({id:t,fault:e,hint:s,tone:n})=>a`<div key=${t} class=${`toast ${n}`} role=${n==="fault"?"alert":"status"}>
        <div><${p} tag="p" of=${u(e)} />${s&&a`<${p} tag="p" class="dim small" of=${u(s)} />`}</div>
        <${f} icon="close" label="Dismiss" onClick=${()=>pe(t)} />
      </div>`)}
  </div>`}function Va(t,{isSideOpen:e,setSideOpen:s,setHelp:n}){if(t.defaultPrevented||document.querySelector("dialog[open]"))return;let i=/^(input|textarea|select)$/i.test(t.target.tagName);t.key==="Escape"?e?s(!1):!_e()&&_.value.view==="talk"&&lt(It(_.value.session)):t.key==="k"&&(t.ctrlKey||t.metaKey)?(t.preventDefault(),s(!0),document.querySelector(".search input")?.focus()):t.altKey&&(t.key==="ArrowUp"||t.key==="ArrowDown")?(t.preventDefault(),Fa(t.key==="ArrowDown"?1:-1)):!i&&t.key==="?"?n(!0):!i&&t.key==="/"&&(t.preventDefault(),document.querySelector(".composer textarea")?.focus())}function Fa(t){let e=Bt.value.map(n=>n.session),s=e[e.indexOf(_.value.session)+t];s&&V("talk",s)}function Ka({session:t},e){if(_.value.view!=="talk"||t!==_.value.session||Date.now()/1e3-e.at>60)return;let s=Xa[e.type]?.(e);s&&tt(u(s).slice(0,Da))}var Xa={"turn.done":({text:t})=>`Answer: ${t}`,"turn.failed":({error:t})=>`The turn failed: ${t}`,"turn.interrupted":()=>"The turn was interrupted","question.asked":({text:t,choices:e})=>`Question: ${t} ${(e??[]).join(", ")}`,"transcript.ready":({text:t})=>`You said: ${t}`,"transcript.failed":({reason:t})=>`Not understood: ${t}`};function za(){if(!navigator.serviceWorker||!window.isSecureContext)return;let t="/service-worker.js",e=window.trustedTypes?.createPolicy("service-worker",{createScriptURL:()=>t});navigator.serviceWorker.register(e?e.createScriptURL(t):t).catch(()=>{}),navigator.serviceWorker.ready.then(({active:s})=>{let i=performance.getEntriesByType("resource").map(({name:o})=>new URL(o).pathname).filter(o=>o.startsWith("/console/"));s.postMessage({shell:["/","/manifest.webmanifest",...new Set(i)]})}),navigator.serviceWorker.addEventListener("message",({data:s})=>s?.session&&V("talk",s.session))}ae(Hs);ae(Ka);js(t=>_.value.view==="talk"&&_.value.session===t);Ia(()=>{x.value&&ds(["sessions","questions",...x.value.rights.includes("operate")&&_.value.view==="watch"?["service"]:[]])});var Qa=Je();document.querySelector("noscript")?.remove();La(a`<${Pa} />`,document.getElementById("app"));ps(Qa);za();
